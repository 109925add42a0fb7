// SPDX-License-Identifier: MIT

// Foundation functions that take pointers. This is the only file of the module with the keyword `unsafe`.

extension InputStream {
    /// Reads at most `count` bytes; `nil` at the end. May block.
    func readChunk(upTo count: Int) throws -> Data? {
        if streamStatus == .notOpen { open() }
        var bytes = [UInt8](repeating: 0, count: count)
        // The array has `count` elements.
        let length = unsafe read(&bytes, maxLength: count)
        guard length >= 0 else { throw streamError ?? CocoaError(.fileReadUnknown) }
        return length == 0 ? nil : Data(bytes.prefix(length))
    }
}

extension PropertyListSerialization {
    /// Reads a property list of any format.
    static func propertyList(from data: Data, options: ReadOptions) throws -> Any {
        try unsafe propertyList(from: data, options: options, format: nil)
    }
}
