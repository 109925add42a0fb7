// SPDX-License-Identifier: MIT

import HTTPTypes
import Hummingbird
import Logging
import Tracing

/// A server whose port the system chooses.
struct Server {
    let application: any ApplicationProtocol
    /// The port, once the server runs.
    let port: Task<Int, Never>

    init(_ router: Router<BasicRequestContext>) {
        let (ports, ready) = AsyncStream.makeStream(of: Int.self)
        application = Application(
            router: router, configuration: .init(address: .hostname("127.0.0.1", port: 0)),
            onServerRunning: { ready.yield($0.localAddress?.port ?? 0) }, logger: .quiet)
        port = Task { await ports.first { _ in true } ?? 0 }
    }
}

extension Server {
    /// The service of stocks, which is busy at first.
    static func stocks(_ visits: Visits) -> Server {
        let router = Router()
        router.add(middleware: TracingMiddleware())
        router.get("stock/:id") { request, _ in
            guard await visits.note(request.headers) > 1 else { throw HTTPError(.serviceUnavailable) }
            return "3"
        }
        return Server(router)
    }

    /// The service of prices, which asks that of stocks.
    static func prices(asking client: StockClient, at port: Task<Int, Never>) -> Server {
        let router = Router()
        router.add(middleware: TracingMiddleware())
        router.get("prices/:id") { _, context in
            let id = context.parameters.get("id") ?? ""
            // snippet.logger
            return try await withLogger(context.logger) { _ in
                let count = try await client.count(of: id, port: port.value)
                return "\(count) in stock, 5 € each"
            }
            // snippet.end
        }
        return Server(router)
    }
}

/// The requests of a service by the field that continues their traces.
actor Visits {
    private(set) var traceparents: [String] = []

    /// Notes a request, and returns the number of those so far.
    func note(_ headers: HTTPFields) -> Int {
        traceparents.append(HTTPField.Name("traceparent").flatMap { headers[$0] } ?? "none")
        return traceparents.count
    }
}

extension Logger {
    /// A logger of warnings and errors.
    static let quiet: Logger = {
        var logger = Logger(label: "services")
        logger.logLevel = .warning
        return logger
    }()
}
