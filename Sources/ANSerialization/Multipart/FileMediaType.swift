// SPDX-License-Identifier: MIT

/// A fixed table of media types by file extension; `/etc/mime.types` is not used because it may be missing or
/// different.
package enum FileMediaType {
    /// Returns the media type for a file name; `application/octet-stream` if its extension is unknown.
    package static func ofFile(named name: String) -> String {
        guard let dot = name.utf8.lastIndex(of: UInt8(ascii: ".")) else { return unknown }
        let suffix = name.utf8[name.utf8.index(after: dot)...]
        guard suffix.count <= 5 else { return unknown }
        return table[String(Substring(suffix)).lowercased()] ?? unknown
    }

    private static let unknown = "application/octet-stream"

    private static let table = [
        "7z": "application/x-7z-compressed", "aac": "audio/aac", "avi": "video/x-msvideo", "avif": "image/avif",
        "bin": "application/octet-stream", "bmp": "image/bmp", "bz2": "application/x-bzip2",
        "cer": "application/x-x509-ca-cert", "crt": "application/x-x509-ca-cert", "css": "text/css", "csv": "text/csv",
        "doc": "application/msword",
        "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "flac": "audio/flac", "gif": "image/gif", "gz": "application/gzip", "heic": "image/heic", "heif": "image/heif",
        "htm": "text/html", "html": "text/html", "ico": "image/x-icon", "ics": "text/calendar", "jpeg": "image/jpeg",
        "jpg": "image/jpeg", "js": "text/javascript", "json": "application/json", "jsonl": "application/jsonl",
        "m4a": "audio/mp4", "m4v": "video/x-m4v", "md": "text/markdown", "mjs": "text/javascript",
        "mov": "video/quicktime", "mp3": "audio/mpeg", "mp4": "video/mp4", "mpeg": "video/mpeg", "oga": "audio/ogg",
        "ogg": "audio/ogg", "ogv": "video/ogg", "otf": "font/otf", "pdf": "application/pdf",
        "pem": "application/x-pem-file", "plist": "application/x-plist", "png": "image/png",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation", "rtf": "application/rtf",
        "svg": "image/svg+xml", "swift": "text/x-swift", "tar": "application/x-tar", "tif": "image/tiff",
        "tiff": "image/tiff", "toml": "application/toml", "ttf": "font/ttf", "txt": "text/plain",
        "wasm": "application/wasm", "wav": "audio/wav", "webm": "video/webm", "webp": "image/webp",
        "woff": "font/woff", "woff2": "font/woff2", "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml",
        "yaml": "application/yaml", "yml": "application/yaml", "zip": "application/zip", "zst": "application/zstd",
    ]
}
