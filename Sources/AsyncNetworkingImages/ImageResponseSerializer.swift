// SPDX-License-Identifier: MIT

public import AsyncNetworking
public import FoundationEssentials

/// A serializer that returns an image, available as `.image`.
///
/// ```swift
/// let logo = try await api.get("logo.png", as: .image).value
/// print(logo.header.format, logo.header.size)
/// ```
///
/// It reads the format and the size from the header of the file. The format is that of the file, which may differ from
/// the media type, as long as ``validation`` accepts that. The image is decoded only if there is a ``decoder``.
public struct ImageResponseSerializer: AdjustableResponseSerializer {
    /// The statuses and media types that are accepted; by default 200 to 299 with the media types of images,
    /// `ResponseValidation.image`.
    public var validation: ResponseValidation
    /// The number of pixels per point of the images, their ``ImageContent/scale``; 1 by default, and a value that is
    /// not positive counts as 1.
    public var scale = 1.0
    /// The decoder with which the image is decoded at once; `nil`, the default, for none.
    ///
    /// It runs in the task that called the session, and on its actor; for a data or upload task in the one that
    /// performs the request, and for an ``ImageDownloader`` off all actors.
    /// Without it, ``ImageContent/decoded(by:options:)`` decodes the image later, off the actor. With
    /// ``BuiltInImageDecoder`` but without the package trait `ImageDecoding`, every image fails with
    /// ``ImageError/decoderUnavailable``.
    public var decoder: (any ImageDecoder)?
    /// The options for the decoder; by default the image keeps its size, its EXIF orientation is applied, and it has at
    /// most 128 Mi pixels and 512 MiB. The ``ImageDecodingOptions/limits`` apply without a decoder as well; the limit
    /// on bytes applies to the size reduced to ``ImageDecodingOptions/maximumSize``.
    public var options = ImageDecodingOptions()

    /// Creates a serializer with a ``scale`` of 1 and default ``options``.
    ///
    /// - Parameters:
    ///   - decoder: The decoder with which images are decoded at once; `nil`, the default, for none.
    ///   - validation: The statuses and media types that are accepted; by default 200 to 299 with the media types of
    ///     images, `ResponseValidation.image`.
    public init(decoder: (any ImageDecoder)? = nil, validation: ResponseValidation = .image) {
        self.decoder = decoder
        self.validation = validation
    }

    /// Returns the image in a response, decoded if there is a ``decoder``.
    ///
    /// - Parameters:
    ///   - head: The head of the response, whose status and media type are not checked here.
    ///   - body: The file.
    /// - Throws: `SerializationError.emptyBody` for an empty body, which a session wraps in a `SessionError`;
    ///   ``ImageError`` for a file that is not an image, is damaged, or exceeds the limits of ``options``, and for a
    ///   ``decoder`` that is not available; the errors of a custom decoder.
    public func serialize(_ head: ResponseHead, _ body: Data) throws -> ImageContent {
        guard !body.isEmpty else { throw SerializationError.emptyBody(status: head.status.code, wanted: "image") }
        let header = try ImageHeader(body)
        try check(header)
        let bitmap = try decoder?.decodeChecked(body, header, options)
        return ImageContent(body, header, scale: scale, bitmap: bitmap)
    }

    /// Throws if an image with this header exceeds the limits.
    func check(_ header: ImageHeader) throws(ImageError) {
        try options.limits.check(header.size, decoded: options.decodedSize(of: header.size))
    }
}

extension ResponseSerializer where Self == ImageResponseSerializer {
    /// A serializer that returns an image without decoding it, with a scale of 1 and at most 128 Mi pixels and 512 MiB,
    /// and accepts the statuses 200 to 299 with the media types of images, `ResponseValidation.image`.
    public static var image: ImageResponseSerializer { ImageResponseSerializer() }

    /// Returns a serializer that decodes the image before it returns, with a scale of 1, and accepts the statuses 200
    /// to 299 with the media types of images, `ResponseValidation.image`.
    ///
    /// The decoder runs in the task that calls the session, where a call from the main actor blocks it, or, for a data
    /// or upload task, in the one that performs the request. ``AsyncNetworkingImages/ImageDownloader`` decodes off all
    /// actors.
    ///
    /// - Parameters:
    ///   - decoder: The decoder, such as `.builtIn`, which requires the package trait `ImageDecoding`, and otherwise
    ///     throws ``AsyncNetworkingImages/ImageError/decoderUnavailable`` for each image.
    ///   - options: The size, the orientation and the limits of the bitmap; by default the image keeps its size, its
    ///     EXIF orientation is applied, and it has at most 128 Mi pixels and 512 MiB.
    public static func image(
        decodedBy decoder: some ImageDecoder, options: ImageDecodingOptions = ImageDecodingOptions()
    ) -> ImageResponseSerializer {
        var serializer = ImageResponseSerializer(decoder: decoder)
        serializer.options = options
        return serializer
    }
}

extension ResponseValidation {
    /// A validation that accepts the statuses 200 to 299 with the media types of images: those of AFNetworking
    /// (`image/tiff`, `image/jpeg`, `image/gif`, `image/png`, `image/ico`, `image/x-icon`, `image/bmp`, `image/x-bmp`,
    /// `image/x-xbitmap`, `image/x-win-bitmap`), `image/webp`, `image/avif`, `image/heif`, `image/heic`, and
    /// `image/vnd.microsoft.icon`.
    ///
    /// A body without a media type, or with another one such as `application/octet-stream`, is rejected. An empty body
    /// is accepted with any media type; ``AsyncNetworkingImages/ImageResponseSerializer`` then throws
    /// `SerializationError.emptyBody`.
    public static let image = ResponseValidation(
        mediaTypes: [
            "image/tiff", "image/jpeg", "image/gif", "image/png", "image/ico", "image/x-icon", "image/bmp",
            "image/x-bmp", "image/x-xbitmap", "image/x-win-bitmap", "image/webp", "image/avif", "image/heif",
            "image/heic", "image/vnd.microsoft.icon",
        ])
}
