// SPDX-License-Identifier: MIT

/// The body of a POST request, about 1 KB as JSON.
package struct Order: Encodable, Sendable {
    package var number = 4_711
    package var items = (1...14).map { Item(name: "Item number \($0)", amount: $0, price: 9.25, isGift: $0 % 5 == 0) }

    package struct Item: Encodable, Sendable {
        var name: String
        var amount: Int
        var price: Double
        var isGift: Bool
    }

    package static let sample = Order()
}

/// The response to a POST request, 59 bytes as JSON.
package struct Customer: Decodable, Sendable {
    package var id: Int
    package var name: String
    package var email: String
}
