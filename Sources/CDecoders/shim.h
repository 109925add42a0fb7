// SPDX-License-Identifier: MIT
//
// The types of the functions that the library looks up in libbrotlidec.so.1, libzstd.so.1 and libnghttp2.so.14 while it
// runs. libcurl is usually linked with all of them, but their headers come with packages of their own, and a system may be without them.

#ifndef CDECODERS_SHIM_H
#define CDECODERS_SHIM_H

#include <stddef.h>
#include <stdint.h>

// brotli/decode.h of Brotli 1.x, see https://www.brotli.org/decode.html.
struct BrotliDecoderStateStruct;

// BrotliDecoderCreateInstance
typedef struct BrotliDecoderStateStruct *(*cdecoders_brotli_create)(
    void *(*allocate)(void *, size_t), void (*release)(void *, void *), void *opaque);
// BrotliDecoderDestroyInstance
typedef void (*cdecoders_brotli_destroy)(struct BrotliDecoderStateStruct *state);
// BrotliDecoderDecompressStream, which returns a BrotliDecoderResult.
typedef int (*cdecoders_brotli_decompress)(
    struct BrotliDecoderStateStruct *state, size_t *available_in, const uint8_t **next_in, size_t *available_out,
    uint8_t **next_out, size_t *total_out);
// BrotliDecoderGetErrorCode, which returns a BrotliDecoderErrorCode.
typedef int (*cdecoders_brotli_error_code)(const struct BrotliDecoderStateStruct *state);

// zstd.h of Zstandard 1.4 or later, see https://facebook.github.io/zstd/zstd_manual.html.
struct ZSTD_DCtx_s;

// ZSTD_inBuffer
struct cdecoders_zstd_input {
    const void *src;
    size_t size;
    size_t pos;
};

// ZSTD_outBuffer
struct cdecoders_zstd_output {
    void *dst;
    size_t size;
    size_t pos;
};

// ZSTD_createDCtx
typedef struct ZSTD_DCtx_s *(*cdecoders_zstd_create)(void);
// ZSTD_freeDCtx
typedef size_t (*cdecoders_zstd_free)(struct ZSTD_DCtx_s *context);
// ZSTD_DCtx_setParameter, whose parameter is a ZSTD_dParameter.
typedef size_t (*cdecoders_zstd_set_parameter)(struct ZSTD_DCtx_s *context, int parameter, int value);
// ZSTD_decompressStream
typedef size_t (*cdecoders_zstd_decompress)(
    struct ZSTD_DCtx_s *context, struct cdecoders_zstd_output *output, struct cdecoders_zstd_input *input);
// ZSTD_isError
typedef unsigned (*cdecoders_zstd_is_error)(size_t code);
// ZSTD_getErrorCode, of zstd_errors.h, which returns a ZSTD_ErrorCode.
typedef int (*cdecoders_zstd_error_code)(size_t code);

// nghttp2.h of nghttp2 1.x, see https://nghttp2.org/documentation/apiref.html.
struct nghttp2_hd_inflater;

// nghttp2_nv
struct cdecoders_nghttp2_field {
    const uint8_t *name;
    const uint8_t *value;
    size_t name_length;
    size_t value_length;
    uint8_t flags;
};

// nghttp2_hd_inflate_new
typedef int (*cdecoders_nghttp2_create)(struct nghttp2_hd_inflater **inflater);
// nghttp2_hd_inflate_del
typedef void (*cdecoders_nghttp2_destroy)(struct nghttp2_hd_inflater *inflater);
// nghttp2_hd_inflate_hd2, whose flags are nghttp2_hd_inflate_flag.
typedef ptrdiff_t (*cdecoders_nghttp2_inflate)(
    struct nghttp2_hd_inflater *inflater, struct cdecoders_nghttp2_field *field, int *flags, const uint8_t *in,
    size_t length, int is_final);
// nghttp2_hd_inflate_end_headers
typedef int (*cdecoders_nghttp2_end)(struct nghttp2_hd_inflater *inflater);

#endif
