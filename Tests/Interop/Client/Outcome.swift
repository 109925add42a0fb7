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
        if let metrics, metrics.attempts > 1 || !metrics.retries.earlierAttempts.isEmpty { repeated = 1 }
    }

    /// Creates the outcome of a failed step.
    init(_ error: any Error) {
        label = Self.label(of: error)
        let retries = (error as? SessionError)?.retries.earlierAttempts.count ?? 0
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
        case .connectionLost(.inBody, let facts): return "connectionLost(inBody)" + code(facts)
        case .connectionLost(let loss, let facts): return "connectionLost(\(loss))" + code(facts)
        case .invalidResponse(let failure, let facts): return "invalidResponse(\(failure))" + code(facts)
        case .cannotConnect(let failure, let facts): return "cannotConnect(\(failure))" + code(facts)
        case .tls(let failure, let facts): return "tls(\(failure))" + code(facts)
        case .timedOut(let phase, _, let facts): return "timedOut(\(phase))" + code(facts)
        default: return name(of: cause)
        }
    }

    private static func name(of error: any Error) -> String {
        String("\(String(reflecting: error).prefix { $0 != "(" })".split(separator: ".").last ?? "error")
    }

    private static func code(_ facts: TransferFacts) -> String {
        facts.curlCode.map { "/\($0)" } ?? ""
    }
}
