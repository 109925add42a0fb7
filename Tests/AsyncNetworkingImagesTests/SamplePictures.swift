// SPDX-License-Identifier: MIT

import AsyncNetworkingImages
import Foundation

/// A picture of 5 × 3 pixels, made by libvips or ImageMagick.
struct SamplePicture: CustomStringConvertible, Sendable {
    let description: String
    let format: ImageFormat
    private let base64: String

    var data: Data { Data(base64Encoded: base64) ?? Data() }

    static let size = PixelSize(width: 5, height: 3)

    static let all = [
        SamplePicture(
            description: "PNG", format: .png,
            base64: """
                iVBORw0KGgoAAAANSUhEUgAAAAUAAAADCAIAAADUVFKvAAAACXBIWXMAAAPoAAAD6AG1e1JrAAAADElEQVQImWNgIA0AAAAwAAFD\
                lLdnAAAAAElFTkSuQmCC
                """),
        SamplePicture(
            description: "JPEG", format: .jpeg,
            base64: """
                /9j/4AAQSkZJRgABAQIACgAKAAD/2wBDAAMCAgICAgMCAgIDAwMDBAYEBAQEBAgGBgUGCQgKCgkICQkKDA8MCgsOCwkJDRENDg8Q\
                EBEQCgwSExIQEw8QEBD/wAALCAADAAUBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAACf/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAI\
                AQEAAD8AKp//2Q==
                """),
        SamplePicture(
            description: "GIF", format: .gif,
            base64: """
                R0lGODlhBQADAIAAAEdwTAAAACH/C05FVFNDQVBFMi4wAwEAAAAh+QQFAAAAACwAAAAABQADAAACA4yPWQA7
                """),
        SamplePicture(
            description: "lossy WebP", format: .webp,
            base64: """
                UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoFAAMABABoJaQAA3AA/vOdgAA=
                """),
        SamplePicture(
            description: "lossless WebP", format: .webp,
            base64: """
                UklGRhoAAABXRUJQVlA4TA4AAAAvBIAAAAcQEf0PRET/Aw==
                """),
        SamplePicture(
            description: "extended WebP", format: .webp,
            base64: """
                UklGRkgAAABXRUJQVlA4WAoAAAAQAAAABAAAAgAAQUxQSAoAAAABB9C/iAhERP8DVlA4IBgAAAAwAQCdASoFAAMAAgA0JaQAA3AA\
                /vv9UAA=
                """),
        SamplePicture(
            description: "AVIF", format: .avif,
            base64: """
                AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAOptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAA\
                AA5waXRtAAAAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAEOAAEAAAAAAAAAGAAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEA\
                AGF2MDEAAAAAamlwcnAAAABLaXBjbwAAABNjb2xybmNseAACAAIABoAAAAAMYXYxQ4EADAAAAAAUaXNwZQAAAAAAAAAFAAAAAwAA\
                ABBwaXhpAAAAAAMICAgAAAAXaXBtYQAAAAAAAAABAAEEgYIDhAAAACBtZGF0EgAKCBgIZMECAgaEMgoYAAAAQAX172To
                """),
        SamplePicture(
            description: "HEIC", format: .heif,
            base64: """
                AAAAGGZ0eXBoZWljAAAAAG1pZjFoZWljAAABrW1ldGEAAAAAAAAAIWhkbHIAAAAAAAAAAHBpY3QAAAAAAAAAAAAAAAAAAAAADnBp\
                dG0AAAAAAAIAAAAQaWRhdAAAAAAABQADAAAAOGlsb2MBAAAAREAAAgABAAAAAAAAAc0AAQAAAAAAAAArAAIAAQAAAAAAAAABAAAA\
                AAAAAAgAAAA4aWluZgAAAAAAAgAAABVpbmZlAgAAAQABAABodmMxAAAAABVpbmZlAgAAAAACAABncmlkAAAAANhpcHJwAAAAtmlw\
                Y28AAAB2aHZjQwEDcAAAAAAAAAAAAB7wAPz9+PgAAA8DIAABABhAAQwB//8DcAAAAwCQAAADAAADAB66AkAhAAEAKkIBAQNwAAAD\
                AJAAAAMAAAMAHqAggQWW6q6a5uBAQMCAAAADAIAAAAMAhCIAAQAGRAHBc8GJAAAAFGlzcGUAAAAAAAAAQAAAAEAAAAAUaXNwZQAA\
                AAAAAAAFAAAAAwAAABBwaXhpAAAAAAMICAgAAAAaaXBtYQAAAAAAAAACAAECgQIAAgIDhAAAABppcmVmAAAAAAAAAA5kaW1nAAIA\
                AQABAAAAM21kYXQAAAAnKAGvEyExlvhOUKf//WeFzQyVTFq5T6Vz3QpQk3J+uP7yh5PFYoLg
                """),
        SamplePicture(
            description: "Windows bitmap", format: .bmp,
            base64: """
                Qk26AAAAAAAAAIoAAAB8AAAABQAAAAMAAAABABgAAAAAADAAAADoAwAA6AMAAAAAAAAAAAAAAAD/AAD/AAD/AAAAAAAA/0JHUnMA\
                AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\
                AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
                """),
        SamplePicture(
            description: "OS/2 bitmap", format: .bmp,
            base64: """
                Qk1KAAAAAAAAABoAAAAMAAAABQADAAEAGAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=
                """),
        SamplePicture(
            description: "TIFF", format: .tiff,
            base64: """
                SUkqADYAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAADwAAAQMAAQAAAAUAAAABAQMAAQAA\
                AAMAAAACAQMAAwAAAAABAAADAQMAAQAAAAEAAAAGAQMAAQAAAAIAAAARAQQAAQAAAAgAAAASAQMAAQAAAAEAAAAVAQMAAQAAAAMA\
                AAAWAQMAAQAAAIAAAAAXAQQAAQAAAC0AAAAaAQUAAQAAAPAAAAAbAQUAAQAAAPgAAAAcAQMAAQAAAAEAAAAoAQMAAQAAAAMAAABT\
                AQMAAwAAAAYBAAAAAAAACgAAAAEAAAAKAAAAAQAAAAgACAAIAAEAAQABAA==
                """),
        SamplePicture(
            description: "icon", format: .ico,
            base64: """
                AAABAAEABQMAAAEAIABwAAAAFgAAACgAAAAFAAAABgAAAAEAIAAAAAAAPAAAAOgDAADoAwAAAAAAAAAAAAAAAAD/AAAA/wAAAP8A\
                AAD/AAAA/wAAAP8AAAD/AAAA/wAAAP8AAAD/AAAA/wAAAP8AAAD/AAAA/wAAAP8AAAAAAAAAAAAAAAA=
                """),
    ]

    /// The picture in PNG.
    static let png = all[0].data
}
