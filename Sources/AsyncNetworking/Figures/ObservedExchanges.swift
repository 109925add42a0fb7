// SPDX-License-Identifier: MIT

package import ANHTTP
package import FoundationEssentials

/// The exchanges of a call that an observer has not written or reported yet, by their numbers.
///
/// Exchanges of one call may overlap. The body of one that has ended may still be read, or never be, as that of a
/// redirect.
package struct ObservedExchanges<Value: Sendable>: Sendable {
    private var exchanges: [(number: Int, value: Value)] = []

    /// The state of an exchange.
    package enum Stage: Hashable, Sendable {
        /// The transport has not reported the end.
        case running
        /// The exchange has ended. Its body may be read later.
        case ended
        /// The exchange has ended, and its body was read or failed.
        case over
    }

    /// Creates a value without exchanges.
    package init() {}

    /// Adds an exchange that begins, and returns those before it that are removed: the ones that are over, and the
    /// oldest of those that have ended, if there are more than ``maximum``.
    package mutating func begin(_ number: Int, _ value: Value, stage: (Value) -> Stage) -> [Value] {
        var surplus = exchanges.count { stage($0.value) == .ended } - Self.maximum
        var removed: [Value] = []
        exchanges.removeAll { exchange in
            switch stage(exchange.value) {
            case .running: return false
            case .ended where surplus <= 0: return false
            case .ended: surplus -= 1
            case .over: break
            }
            removed.append(exchange.value)
            return true
        }
        exchanges.append((number, value))
        return removed
    }

    /// Changes the exchange with a number, if there is one.
    package mutating func change(_ number: Int, _ change: (inout Value) -> Void) {
        guard let index = exchanges.lastIndex(where: { $0.number == number }) else { return }
        change(&exchanges[index].value)
    }

    /// Changes all exchanges.
    package mutating func changeEach(_ change: (inout Value) -> Void) {
        for index in exchanges.indices { change(&exchanges[index].value) }
    }

    /// The exchanges, in the order in which they began.
    package var all: [Value] { exchanges.map(\.value) }

    /// The number of exchanges that have ended and are kept.
    package static var maximum: Int { 16 }
}

extension ResponseBody {
    /// Returns the body with closures that are called, by its reader, with each chunk, and at the end: with the error
    /// if reading failed, and possibly several times.
    package func observed(
        chunk: @escaping @Sendable (Data) -> Void = { _ in }, end: @escaping @Sendable ((any Error)?) -> Void
    ) -> ResponseBody {
        reading(ObservedBody(base: self, chunk: chunk, end: end))
    }
}

private struct ObservedBody: FileBodySource {
    let base: ResponseBody
    let chunk: @Sendable (Data) -> Void
    let end: @Sendable ((any Error)?) -> Void

    func next() async throws -> Data? {
        let next = try await notingFailure { try await base.next() }
        if let next { chunk(next) } else { end(nil) }
        return next
    }

    func collect(upTo limit: Int) async throws -> Data {
        let data = try await notingFailure { try await base.collect(upTo: limit) }
        chunk(data)
        end(nil)
        return data
    }

    private func notingFailure<Result>(_ read: () async throws -> Result) async throws -> Result {
        do {
            return try await read()
        } catch {
            end(error)
            throw error
        }
    }
}
