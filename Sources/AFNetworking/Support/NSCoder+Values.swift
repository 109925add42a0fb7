// SPDX-License-Identifier: MIT

extension NSCoder {
    /// Archives a value as JSON.
    func encodeValue(_ value: some Encodable, forKey key: String) {
        guard let data = try? JSONEncoder().encode(value) else { return }
        encode(data as NSData, forKey: key)
    }

    /// Decodes a value that was archived as JSON; `nil` if the key is absent or the value cannot be decoded.
    func decodeValue<Value: Decodable>(_ type: Value.Type, forKey key: String) -> Value? {
        guard containsValue(forKey: key), let data = decodeObject(of: NSData.self, forKey: key) else { return nil }
        return try? JSONDecoder().decode(type, from: data as Data)
    }
}
