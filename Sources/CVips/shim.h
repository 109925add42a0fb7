// SPDX-License-Identifier: MIT

// Swift cannot call the functions of libvips with variable arguments, nor use its macros.

#pragma once
#include <vips/vips.h>

// Files are read through a VipsSource: libvips caches operations on a buffer by its address, where another file may be
// later, whereas a cached operation retains its source.

// Opens a file without decoding its pixels. Options end with NULL, which is not the integer 0 in a variable argument.
static inline VipsImage *cvips_open(VipsSource *source)
{
    return vips_image_new_from_source(source, "", "access", VIPS_ACCESS_SEQUENTIAL, NULL);
}

// Whether a file contains an ICC profile.
static inline gboolean cvips_has_profile(VipsImage *image)
{
    return vips_image_get_typeof(image, VIPS_META_ICC_NAME) != 0;
}

// VIPS_SIZE_DOWN only reduces. The option fail_on makes truncated and damaged files errors; the argument of the same name
// has no effect for a source in libvips 8.14.
static inline int cvips_thumbnail(
    VipsSource *source, VipsImage **out, int width, int height, gboolean applies_orientation, gboolean applies_profile)
{
    return vips_thumbnail_source(
        source, out, width, "height", height, "size", VIPS_SIZE_DOWN, "no_rotate", !applies_orientation,
        "option_string", "fail_on=error", applies_profile ? "export_profile" : NULL, "srgb", NULL);
}

static inline int cvips_srgb(VipsImage *in, VipsImage **out)
{
    return vips_colourspace(in, out, VIPS_INTERPRETATION_sRGB, NULL);
}

static inline int cvips_cast_uchar(VipsImage *in, VipsImage **out)
{
    return vips_cast_uchar(in, out, NULL);
}

static inline int cvips_add_alpha(VipsImage *in, VipsImage **out)
{
    return vips_addalpha(in, out, NULL);
}

static inline void cvips_release_image(VipsImage *image)
{
    g_object_unref(image);
}

static inline void cvips_release_source(VipsSource *source)
{
    g_object_unref(source);
}

// A macro.
static inline int cvips_init(void)
{
    return VIPS_INIT("AsyncNetworkingImages");
}
