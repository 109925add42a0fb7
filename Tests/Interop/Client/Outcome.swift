// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

/// The number of rounds per outcome; printed as JSON.
struct Outcomes: Encodable, Sendable {
    /// The count for each outcome.
    var counts: [String: Int] = [:]
    /// The description of the first error for each outcome.
    var examples: [String: String] = [:]
    /// The number of requests that were sent more than once.
    var repeated = 0

    /// Adds the outcome of a round.
    mutating func add(_ outcome: Outcome) {
        counts[outcome.label, default: 0] += 1
        if let example = outcome.example, examples[outcome.label] == nil { examples[outcome.label] = example }
        repeated += outcome.repeated
    }

    /// Adds the outcomes of a worker.
    mutating func add(_ other: Outcomes) {
        counts.merge(other.counts, uniquingKeysWith: +)
        examples.merge(other.examples) { old, _ in old }
        repeated += other.repeated
    }
}

/// The outcome of a round or of a step of one.
struct Outcome: Sendable {
    var label: String
    var example: String?
    var repeated = 0

    /// Creates the outcome of a successful step.
    init(_ label: String, metrics: TransferMetrics? = nil) {
        self.label = label
        if let metrics, metrics.sendCount > 1 || !metrics.retryHistory.earlierAttempts.isEmpty { repeated = 1 }
    }

    /// Creates the outcome of a failed step.
    init(_ error: any Error) {
        label = Self.label(of: error)
        let retries = (error as? SessionError)?.retryHistory.earlierAttempts.count ?? 0
        if retries > 0 { label += " after \(retries) retries" }
        example = "\(error)"
    }

    /// Appends the outcome of the next step of the round.
    mutating func append(_ next: Outcome) {
        label += " " + next.label
        example = example ?? next.example
        repeated += next.repeated
    }

    /// Returns the case of an error, without the numbers that vary between requests.
    private static func label(of error: any Error) -> String {
        guard let error = error as? SessionError else { return "\(type(of: error))" }
        guard let error = error.transport else { return name(of: error) }
        let code = error.context.curlCode.map { "/\($0)" } ?? ""
        switch error.reason {
        case .connectionLost(.inBody): return "connectionLost(inBody)" + code
        case .connectionLost(let loss): return "connectionLost(\(loss))" + code
        case .invalidResponse(let failure): return "invalidResponse(\(failure))" + code
        case .cannotConnect(let failure): return "cannotConnect(\(failure))" + code
        case .tls(let failure): return "tls(\(failure))"
        case .timedOut(let phase): return "timedOut(\(phase))" + code
        default: return name(of: error.reason)
        }
    }

    private static func name(of error: any Sendable) -> String {
        String("\(String(reflecting: error).prefix { $0 != "(" })".split(separator: ".").last ?? "error")
    }
}
