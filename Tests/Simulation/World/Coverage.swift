// SPDX-License-Identifier: MIT

extension Exploration {
    /// The names of all steps, faults and rules that the programs of all families can reach.
    public static var coverable: [String] {
        let actions =
            Program.Call.Kind.allCases.map { "call.\($0)" } + ["removeToken", "moveDate", "shutDown", "invalidate"]
        let parts: [(String, [String])] = [
            (
                "fault",
                Origins.Fault.allCases.map(\.rawValue) + [
                    "noRoute", "upload.answered", "upload.meanwhile", "upload.reset", "upload.silent",
                ]
            ),
            (
                "fileFault",
                [
                    "crossing", "fdatasync", "fsync", "ftruncate", "link", "lseek", "open", "pread", "rename", "reopen",
                    "shortWrite", "write",
                ]
            ),
            (
                "crash",
                ["fdatasync", "fsync", "ftruncate", "link", "open", "power", "rename", "reopen", "unlink", "write"]
            ),
            ("vanish", ["cache", "all"]),
            ("late", ["response"]),
            ("failure", Failure.Place.allCases.map(\.rawValue)),
            ("interceptor", Interception.allCases.map(\.rawValue)),
            ("socket", SocketEnding.allCases.map(\.rawValue) + (1...3).map { "connection.\($0)" }),
            ("group", ["sizes", "suspend", "cancel"]),
            ("route", ["wait", "back"]),
            ("download", ["repeated", "resumable", "resumed", "restored", "segmented", "verified", "lied"]),
            (
                "upload",
                [
                    "bytesLost", "complete", "conflict", "continued", "cut", "early", "forgotten", "restored", "silent",
                    "status.403", "status.404", "status.409", "status.410", "status.423", "status.460",
                ]
            ),
            ("refresh", ["begins", "fails", "lateEnd"]),
            (
                "status",
                [200, 204, 206, 301, 302, 303, 304, 307, 308, 401, 408, 416, 421, 425, 429, 500, 502, 503].map {
                    "\($0)"
                }
            ),
            (
                "oracle",
                [
                    "2", "2.answered", "2.crash", "2.errorPage", "2.file", "2.meanwhile", "2.range", "2.resumable",
                    "2.socket",
                    "2.shared", "2.socketEnd",
                    "2.upload", "3", "3.upload", "4",
                    "5.stored", "6", "6.invalidated", "6.shutDown", "7", "7.concurrency", "7.download", "7.events",
                    "7.exhausted", "7.failure", "7.failureRetried", "7.rate",
                    "7.queue", "7.refresh", "7.retryAfter", "7.sharing", "7.socket", "7.timeout", "8",
                    "8.group", "8.upload",
                    "8.task", "9.wait",
                ]
            ),
            (
                "end",
                [
                    "success", "CancellationError", "cannotConnect", "cannotResolve", "connectionLost", "timedOut",
                    "webSocketClosed", "invalidResponse", "RefreshFailure", "SessionError.file",
                    "SessionError.notCached", "SessionError.upload",
                    "SessionError.invalidated",
                ]
            ),
        ]
        return (actions + ["suspend", "events.complete"] + parts.flatMap { part in part.1.map { "\(part.0).\($0)" } })
            .sorted()
    }
}
