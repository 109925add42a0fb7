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
        guard case .transport(let cause) = error else { return name(of: error) }
        switch cause {
        case .connectionLost(.inBody, let context): return "connectionLost(inBody)" + code(context)
        case .connectionLost(let loss, let context): return "connectionLost(\(loss))" + code(context)
        case .invalidResponse(let failure, let context): return "invalidResponse(\(failure))" + code(context)
        case .cannotConnect(let failure, let context): return "cannotConnect(\(failure))" + code(context)
        case .tls(let failure, let context): return "tls(\(failure))" + code(context)
        case .timedOut(let phase, _, let context): return "timedOut(\(phase))" + code(context)
        default: return name(of: cause)
        }
    }

    private static func name(of error: any Error) -> String {
        String("\(String(reflecting: error).prefix { $0 != "(" })".split(separator: ".").last ?? "error")
    }

    private static func code(_ context: FailureContext) -> String {
        context.curlCode.map { "/\($0)" } ?? ""
    }
}
