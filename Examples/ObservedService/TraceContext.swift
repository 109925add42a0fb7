// SPDX-License-Identifier: MIT

import InMemoryTracing
import Tracing

/// A tracer that keeps spans in memory, and passes their contexts on in the field `traceparent`, as W3C Trace Context
/// defines it. A real program has the tracer of its OpenTelemetry package.
struct TraceContextTracer: Tracer {
    let spans = InMemoryTracer(idGenerator: .random)

    func startSpan(
        _ operationName: String, context: @autoclosure () -> ServiceContext, ofKind kind: SpanKind,
        at instant: @autoclosure () -> some TracerInstant, function: String, file fileID: String, line: UInt
    ) -> InMemorySpan {
        spans.startSpan(
            operationName, context: context(), ofKind: kind, at: instant(), function: function, file: fileID, line: line
        )
    }

    func inject<Carrier, Inject: Injector>(
        _ context: ServiceContext, into carrier: inout Carrier, using injector: Inject
    ) where Inject.Carrier == Carrier {
        guard let span = context.inMemorySpanContext else { return }
        injector.inject("00-\(span.traceID)-\(span.spanID)-01", forKey: "traceparent", into: &carrier)
    }

    func extract<Carrier, Extract: Extractor>(
        _ carrier: Carrier, into context: inout ServiceContext, using extractor: Extract
    ) where Extract.Carrier == Carrier {
        guard let parts = extractor.extract(key: "traceparent", from: carrier)?.split(separator: "-"), parts.count == 4
        else { return }
        context.inMemorySpanContext = InMemorySpanContext(
            traceID: String(parts[1]), spanID: String(parts[2]), parentSpanID: nil)
    }

    func forceFlush() {}
}

extension InMemoryTracer.IDGenerator {
    /// Trace IDs of 16 bytes and span IDs of 8, in hexadecimal digits.
    fileprivate static let random = Self(nextTraceID: { hexadecimal() + hexadecimal() }, nextSpanID: hexadecimal)
}

@Sendable private func hexadecimal() -> String {
    let digits = String(UInt64.random(in: 1 ... .max), radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}
