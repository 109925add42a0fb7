// SPDX-License-Identifier: MIT

import AFNetworking
import AsyncNetworking

// Four states of one class, which "Migrating from AFNetworking" shows: the first one, and the differences of the others,
// which begin with `// state.NUMBER`.

struct Product: Decodable, Sendable {
    var name: String
    var price: Double

    init?(_ json: [String: Any]) {
        guard let name = json["name"] as? String, let price = json["price"] as? Double else { return nil }
        self.name = name
        self.price = price
    }
}

struct SoldOut: Error {}

struct Receipt: Decodable, Sendable { var number: Int }

enum Callbacks {
    // state.1
    // snippet.with-callbacks
    final class Shop: Sendable {
        private let manager: AFHTTPSessionManager

        init(_ baseURL: URL, token: String) {
            manager = AFHTTPSessionManager(baseURL: baseURL)
            manager.requestSerializer = AFJSONRequestSerializer()
            manager.requestSerializer.timeoutInterval = 20
            manager.requestSerializer.setValue("Bearer \(token)", forHTTPHeaderField: "Authorization")
        }

        func products(_ filter: [String: Any]?, completion: @escaping @Sendable ([Product], (any Error)?) -> Void) {
            manager.get("products", parameters: filter, headers: nil, progress: nil) { _, object in
                let list = (object as? [String: Any])?["products"] as? [[String: Any]] ?? []
                completion(list.compactMap(Product.init), nil)
            } failure: { _, error in
                completion([], error)
            }
        }

        func order(_ items: [String: Any], completion: @escaping @Sendable (Int?, (any Error)?) -> Void) {
            manager.post("orders", parameters: items, headers: nil, progress: nil) { _, object in
                completion((object as? [String: Any])?["number"] as? Int, nil)
            } failure: { task, error in
                let isSoldOut = (task?.response as? HTTPURLResponse)?.statusCode == 409
                completion(nil, isSoldOut ? SoldOut() : error)
            }
        }

        func upload(
            _ photo: Data, of product: Int, progress: @escaping @Sendable (Double) -> Void,
            completion: @escaping @Sendable ((any Error)?) -> Void
        ) {
            manager.post(
                "products/\(product)/photo", parameters: nil, headers: nil,
                constructingBodyWith: { form in
                    form.appendPart(withFileData: photo, name: "photo", fileName: "a.jpg", mimeType: "image/jpeg")
                },
                progress: { progress($0.fractionCompleted) }, success: { _, _ in completion(nil) },
                failure: { _, error in completion(error) })
        }

        func cancelAll() {
            for task in manager.tasks { task.cancel() }
        }
    }
    // snippet.end
    // state.end
}

enum SharedSession {
    // state.2
    final class Shop: Sendable {
        private let session: SessionManager
        private let manager: AFHTTPSessionManager

        init(_ baseURL: URL, token: String) {
            session = SessionManager(baseURL: baseURL) {
                $0.timeouts.idle = .seconds(20)
                $0.headers[.authorization] = "Bearer \(token)"
                $0.requestSerializer = .json
            }
            manager = AFHTTPSessionManager(session: session)
            manager.requestSerializer = AFJSONRequestSerializer()
        }

        func products(_ filter: [String: Any]?, completion: @escaping @Sendable ([Product], (any Error)?) -> Void) {
            manager.get("products", parameters: filter, headers: nil, progress: nil) { _, object in
                let list = (object as? [String: Any])?["products"] as? [[String: Any]] ?? []
                completion(list.compactMap(Product.init), nil)
            } failure: { _, error in
                completion([], error)
            }
        }

        func order(_ items: [String: Any], completion: @escaping @Sendable (Int?, (any Error)?) -> Void) {
            manager.post("orders", parameters: items, headers: nil, progress: nil) { _, object in
                completion((object as? [String: Any])?["number"] as? Int, nil)
            } failure: { task, error in
                let isSoldOut = (task?.response as? HTTPURLResponse)?.statusCode == 409
                completion(nil, isSoldOut ? SoldOut() : error)
            }
        }

        func upload(
            _ photo: Data, of product: Int, progress: @escaping @Sendable (Double) -> Void,
            completion: @escaping @Sendable ((any Error)?) -> Void
        ) {
            manager.post(
                "products/\(product)/photo", parameters: nil, headers: nil,
                constructingBodyWith: { form in
                    form.appendPart(withFileData: photo, name: "photo", fileName: "a.jpg", mimeType: "image/jpeg")
                },
                progress: { progress($0.fractionCompleted) }, success: { _, _ in completion(nil) },
                failure: { _, error in completion(error) })
        }

        func cancelAll() {
            for task in manager.tasks { task.cancel() }
        }
    }
    // state.end
}

enum HalfMigrated {
    // state.3
    final class Shop: Sendable {
        private let session: SessionManager
        private let manager: AFHTTPSessionManager

        init(_ baseURL: URL, token: String) {
            session = SessionManager(baseURL: baseURL) {
                $0.timeouts.idle = .seconds(20)
                $0.headers[.authorization] = "Bearer \(token)"
                $0.requestSerializer = .json
            }
            manager = AFHTTPSessionManager(session: session)
            manager.requestSerializer = AFJSONRequestSerializer()
        }

        func products(_ filter: [String: Any]?) async throws -> [Product] {
            let parameters = filter.map { Parameters($0) }
            let answer = try await session.get(
                "products", parameters: parameters, as: .decodable([String: [Product]].self))
            return answer.value["products"] ?? []
        }

        func order(_ items: [String: Any], completion: @escaping @Sendable (Int?, (any Error)?) -> Void) {
            manager.post("orders", parameters: items, headers: nil, progress: nil) { _, object in
                completion((object as? [String: Any])?["number"] as? Int, nil)
            } failure: { task, error in
                let isSoldOut = (task?.response as? HTTPURLResponse)?.statusCode == 409
                completion(nil, isSoldOut ? SoldOut() : error)
            }
        }

        func upload(
            _ photo: Data, of product: Int, progress: @escaping @Sendable (Double) -> Void,
            completion: @escaping @Sendable ((any Error)?) -> Void
        ) {
            manager.post(
                "products/\(product)/photo", parameters: nil, headers: nil,
                constructingBodyWith: { form in
                    form.appendPart(withFileData: photo, name: "photo", fileName: "a.jpg", mimeType: "image/jpeg")
                },
                progress: { progress($0.fractionCompleted) }, success: { _, _ in completion(nil) },
                failure: { _, error in completion(error) })
        }

        func cancelAll() {
            for task in manager.tasks { task.cancel() }
        }
    }
    // state.end
}

enum Async {
    // state.4
    final class Shop: Sendable {
        private let session: SessionManager

        init(_ baseURL: URL, token: String) {
            session = SessionManager(baseURL: baseURL) {
                $0.timeouts.idle = .seconds(20)
                $0.headers[.authorization] = "Bearer \(token)"
                $0.requestSerializer = .json
            }
        }

        func products(_ filter: [String: Any]?) async throws -> [Product] {
            let parameters = filter.map { Parameters($0) }
            let answer = try await session.get(
                "products", parameters: parameters, as: .decodable([String: [Product]].self))
            return answer.value["products"] ?? []
        }

        func order(_ items: [String: Any]) async throws -> Int {
            do {
                return try await session.post("orders", parameters: Parameters(items), as: .decodable(Receipt.self))
                    .value.number
            } catch let error as SessionError where error.statusCode == 409 {
                throw SoldOut()
            }
        }

        func upload(_ photo: Data, of product: Int, progress: (Double) -> Void) async throws {
            var form = MultipartFormData()
            try form.append(photo, name: "photo", fileName: "a.jpg", mediaType: "image/jpeg")
            let upload = session.upload("products/\(product)/photo", body: .form(form))
            for await state in upload.progress { progress(state.fraction ?? 0) }
            _ = try await upload.value
        }
    }
    // state.end
}
