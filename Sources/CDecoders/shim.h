// SPDX-License-Identifier: MIT
//
// The types of the functions that the library looks up in libbrotlidec.so.1 and libzstd.so.1 while it runs. libcurl is
// usually linked with both, but their headers come with packages of their own, and a system may be without them.

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

#endif
