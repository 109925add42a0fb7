// SPDX-License-Identifier: MIT

/// The figures of a run, or the medians of several runs.
struct Sample {
    var processorMicrosecondsPerRequest: Double
    var requestsPerSecond: Double
    var wallSeconds: Double
    var peakMemoryKilobytes: Double

    /// Returns the median of each figure.
    static func median(of samples: [Sample]) -> Sample? {
        guard !samples.isEmpty else { return nil }
        func median(_ figure: KeyPath<Sample, Double>) -> Double {
            let sorted = samples.map { $0[keyPath: figure] }.sorted()
            return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
        }
        return Sample(
            processorMicrosecondsPerRequest: median(\.processorMicrosecondsPerRequest),
            requestsPerSecond: median(\.requestsPerSecond),
            wallSeconds: median(\.wallSeconds),
            peakMemoryKilobytes: median(\.peakMemoryKilobytes))
    }
}

/// The main figure of a workload.
enum Figure {
    case processorTime, wallTime, peakMemory

    var name: String {
        switch self {
        case .processorTime: "CPU"
        case .wallTime: "wall time"
        case .peakMemory: "peak memory"
        }
    }

    var path: KeyPath<Sample, Double> {
        switch self {
        case .processorTime: \.processorMicrosecondsPerRequest
        case .wallTime: \.wallSeconds
        case .peakMemory: \.peakMemoryKilobytes
        }
    }
}
