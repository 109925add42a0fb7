// SPDX-License-Identifier: MIT

// What Foundation does with pointers only, and this module therefore with the word `unsafe`: here and nowhere else.

extension InputStream {
    /// The next bytes, at most `count`; nil at the end. It may block.
    func readChunk(upTo count: Int) throws -> Data? {
        if streamStatus == .notOpen { open() }
        var bytes = [UInt8](repeating: 0, count: count)
        // The array is as long as it says.
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
