// SPDX-License-Identifier: MIT

#if ImageDecoding
    import CVips
    import FoundationEssentials

    /// The functions of libvips (https://www.libvips.org/API/current/) that decode an image.
    enum VipsLibrary {
        /// Whether libvips was initialised, once for the process. It need not be shut down.
        private static let isInitialized = cvips_init() == 0

        /// Decodes a file in the calling thread, with the help of libvips' own threads.
        static func decode(
            _ data: Data, _ header: ImageHeader, _ options: ImageDecodingOptions
        ) throws(ImageError) -> Bitmap {
            guard isInitialized else { throw failure() }
            do {
                return try unsafe data.withUnsafeBytes { bytes in try unsafe decode(bytes, header, options) }
            } catch {
                throw error as? ImageError ?? .decoding(reason: "\(error)")
            }
        }

        private static func decode(
            _ bytes: UnsafeRawBufferPointer, _ header: ImageHeader, _ options: ImageDecodingOptions
        ) throws(ImageError) -> Bitmap {
            let hasProfile = try unsafe check(VipsSourceHandle(borrowing: bytes), header, options)
            let source = try unsafe VipsSourceHandle(borrowing: bytes)
            let limit = options.maximumSize
            var image: VipsImageHandle?
            image = try unsafe VipsImageHandle { out in
                unsafe cvips_thumbnail(
                    source.source, &out, side(limit?.width), side(limit?.height), options.appliesOrientation ? 1 : 0,
                    hasProfile ? 1 : 0)
            }
            // Conversion to sRGB also reduces 16 bits to 8, and expands grey.
            image = try unsafe image?.converted { unsafe cvips_srgb($0, &$1) }
            image = try unsafe image?.converted { unsafe cvips_cast_uchar($0, &$1) }
            if image?.bands == 3 { image = try unsafe image?.converted { unsafe cvips_add_alpha($0, &$1) } }
            guard let image, image.bands == 4 else { throw channelError }
            try options.limits.check(image.size)
            guard let bitmap = Bitmap(size: image.size, pixels: try image.pixels()) else { throw failure() }
            return bitmap
        }

        private static let channelError = ImageError.decoding(reason: "It has an unusual number of channels.")

        /// Checks the loader and the size that libvips determines, before it decodes pixels. Returns whether the file
        /// contains an ICC profile.
        private static func check(
            _ source: borrowing VipsSourceHandle, _ header: ImageHeader, _ options: ImageDecodingOptions
        ) throws(ImageError) -> Bool {
            // libvips also has loaders for formats that are not safe to read from the network.
            guard let loader = unsafe vips_foreign_find_load_source(source.source),
                let name = loaders[header.format], unsafe String(cString: loader).hasPrefix(name)
            else {
                vips_error_clear()
                throw .decoding(reason: "libvips has no loader for the format \(header.format).")
            }
            let pointer = unsafe source.source
            let file = try unsafe VipsImageHandle { out in
                unsafe out = cvips_open(pointer)
                return unsafe out == nil ? -1 : 0
            }
            // Of black ink and four colours at most.
            guard file.bands <= 5 else { throw channelError }
            try options.limits.check(
                file.size, decoded: options.decodedSize(of: file.size), bytesPerPixel: file.bytesPerPixel)
            return file.hasProfile
        }

        /// The prefixes of the classes that load the formats.
        private static let loaders: [ImageFormat: String] = [
            .png: "VipsForeignLoadPng", .jpeg: "VipsForeignLoadJpeg", .gif: "VipsForeignLoadNsgif",
            .webp: "VipsForeignLoadWebp", .tiff: "VipsForeignLoadTiff", .avif: "VipsForeignLoadHeif",
            .heif: "VipsForeignLoadHeif",
        ]

        /// Returns a side of the maximum size for libvips.
        private static func side(_ length: Int?) -> Int32 {
            // VIPS_MAX_COORD, the largest side of an image.
            Int32(clamping: min(max(length ?? .max, 1), 10_000_000))
        }

        /// Returns the error that libvips reported last. Its buffer belongs to the process: with concurrent failures,
        /// the text may be that of another image.
        static func failure() -> ImageError {
            guard let text = unsafe vips_error_buffer_copy() else { return .decoding(reason: "libvips failed.") }
            defer { unsafe g_free(text) }
            let lines = unsafe String(cString: text).split(separator: "\n").prefix(3)
            return .decoding(reason: "libvips: " + lines.joined(separator: "; "))
        }
    }

    /// A source of libvips, which reads a file in memory.
    @safe private struct VipsSourceHandle: ~Copyable {
        let source: UnsafeMutablePointer<VipsSource>

        /// Creates a source that reads the bytes in place. They must outlive all use of the images made of it.
        init(borrowing bytes: UnsafeRawBufferPointer) throws(ImageError) {
            guard let source = unsafe vips_source_new_from_memory(bytes.baseAddress, bytes.count) else {
                throw VipsLibrary.failure()
            }
            unsafe self.source = source
        }

        deinit {
            unsafe cvips_release_source(source)
        }
    }

    /// An image of libvips, of which this handle is the owner.
    @safe private struct VipsImageHandle: ~Copyable {
        private let image: UnsafeMutablePointer<VipsImage>

        /// Creates the handle of the image that a function of libvips makes.
        init(
            making make: (inout UnsafeMutablePointer<VipsImage>?) -> Int32
        ) throws(ImageError) {
            var out: UnsafeMutablePointer<VipsImage>?
            guard unsafe make(&out) == 0, let image = unsafe out else { throw VipsLibrary.failure() }
            unsafe self.image = image
        }

        deinit {
            unsafe cvips_release_image(image)
        }

        var bands: Int { Int(unsafe vips_image_get_bands(image)) }

        var bytesPerPixel: Int { bands * Int(unsafe vips_format_sizeof(vips_image_get_format(image))) }

        var hasProfile: Bool { unsafe cvips_has_profile(image) != 0 }

        var size: PixelSize {
            PixelSize(width: Int(unsafe vips_image_get_width(image)), height: Int(unsafe vips_image_get_height(image)))
        }

        /// Returns the image that a conversion makes of this one. The conversion retains what it needs of this one.
        func converted(
            by convert: (UnsafeMutablePointer<VipsImage>, inout UnsafeMutablePointer<VipsImage>?) -> Int32
        ) throws(ImageError) -> VipsImageHandle {
            try unsafe VipsImageHandle { out in unsafe convert(image, &out) }
        }

        /// Decodes the pixels.
        func pixels() throws(ImageError) -> Data {
            var count = 0
            guard let memory = unsafe vips_image_write_to_memory(image, &count) else { throw VipsLibrary.failure() }
            return unsafe Data(
                bytesNoCopy: memory, count: count, deallocator: .custom { memory, _ in unsafe g_free(memory) })
        }
    }
#endif
