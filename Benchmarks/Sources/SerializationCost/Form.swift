// SPDX-License-Identifier: MIT

import AsyncNetworking
import Foundation

/// A nested form of 50 keys whose encodings by both encoders are equal.
enum Form {
    static let parameters: Parameters = .dictionary(
        (0..<10).map { index in
            let user: Parameters = [
                "name": "Ada Lovelace \(index)", "city": "São Paulo", "age": 30 + index,
                "address": ["street": "12 St James Square", "postcode": "SW1Y 4LB"],
            ]
            return .init("user\(index)", user)
        })

    /// Returns the query that `URLComponents` encodes from names and values.
    static func query(of items: [URLQueryItem]) -> String {
        var components = URLComponents()
        components.queryItems = items
        return components.percentEncodedQuery ?? ""
    }
}
