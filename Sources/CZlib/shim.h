// SPDX-License-Identifier: MIT
//
// What the library uses of zlib, declared here: zlib's headers come with a package that neither libcurl's nor OpenSSL's
// brings, while its library is one that libcurl itself is linked with. The interface is the one of every zlib 1.x, see
// https://www.zlib.net/manual.html; own names keep it apart from a <zlib.h> that a program includes.

#ifndef CZLIB_SHIM_H
#define CZLIB_SHIM_H

#include <stdint.h>

// z_stream.
struct czlib_stream {
    const uint8_t *next_in;
    uint32_t avail_in;
    unsigned long total_in;
    uint8_t *next_out;
    uint32_t avail_out;
    unsigned long total_out;
    const char *msg;
    void *state;
    void *(*zalloc)(void *, uint32_t, uint32_t);
    void (*zfree)(void *, void *);
    void *opaque;
    int data_type;
    unsigned long adler;
    unsigned long reserved;
};

int czlib_deflate_init(
    struct czlib_stream *stream, int level, int method, int window_bits, int memory_level, int strategy,
    const char *version, int stream_size) __asm__("deflateInit2_");
int czlib_deflate(struct czlib_stream *stream, int flush) __asm__("deflate");
int czlib_deflate_end(struct czlib_stream *stream) __asm__("deflateEnd");

int czlib_inflate_init(struct czlib_stream *stream, int window_bits, const char *version, int stream_size) __asm__(
    "inflateInit2_");
int czlib_inflate(struct czlib_stream *stream, int flush) __asm__("inflate");
int czlib_inflate_reset(struct czlib_stream *stream) __asm__("inflateReset");
int czlib_inflate_end(struct czlib_stream *stream) __asm__("inflateEnd");

#endif
