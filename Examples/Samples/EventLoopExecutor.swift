// SPDX-License-Identifier: MIT

import AsyncNetworking
import FoundationEssentials

// The samples of the article "Tasks on the event loop".

struct Sensor: Decodable, Sendable {
    var name: String
    var value: Double
}

func readSensors(_ api: SessionManager, _ paths: [String]) async throws -> [Sensor] {
    // snippet.overview
    try await withTaskExecutorPreference(api.eventLoopExecutor) {
        var sensors: [Sensor] = []
        for path in paths {
            sensors.append(try await api.get(path, as: .decodable(Sensor.self)).value)
        }
        return sensors
    }
    // snippet.end
}

func startPolling(_ api: SessionManager) -> Task<Void, any Error> {
    // snippet.unstructured
    Task(executorPreference: api.eventLoopExecutor) {
        while true {
            print(try await api.get("status").statusCode)
            try await Task.sleep(for: .seconds(1))
        }
    }
    // snippet.end
}
