// SPDX-License-Identifier: MIT

public import ANCache
public import ANHTTP
import FoundationEssentials

/// The connections, exchanges, tasks and cache of a session at one moment; see ``SessionManager/snapshot()``.
///
/// Its ``description`` is a tree, for a log or a debugging endpoint:
///
/// ```text
/// session: 2 tasks, 2 connections, 1 exchange waits
/// ├── https://api.example.com
/// │   ├── 192.0.2.7:443, HTTP/1.1, busy, 12.40 s old
/// │   │   └── GET https://api.example.com/report?key=…: response body, 12 of 40 bytes, after 300 ms
/// │   ├── 192.0.2.7:443, HTTP/1.1, idle for 1.20 s, 12.40 s old
/// │   └── GET https://api.example.com/users: queue, after 20 ms
/// ├── tasks
/// │   ├── #7 GET https://api.example.com/report?key=…: running, 12 of 40 bytes
/// │   └── #8 GET https://api.example.com/users: running
/// └── cache: 3 responses, 12000 bytes in memory, 0 bytes on disk
/// ```
public struct SessionSnapshot: Sendable {
    /// The origins with connections or exchanges, sorted.
    public var hosts: [Host]
    /// The tasks that have not ended, oldest first, those of async functions included.
    public var tasks: [TaskEntry]
    /// The numbers of stored responses and bytes; `nil` without a cache.
    public var cache: ResponseCache.Usage?

    /// An origin: a scheme, a host and a port.
    public struct Host: Sendable {
        /// The origin, such as `https://api.example.com`.
        public var origin: String
        /// The open connections that have carried a request, oldest first. Those over QUIC are not known.
        public var connections: [Connection]
        /// The exchanges without a known connection: those that wait for one or make one, and those over HTTP/3.
        public var waiting: [Exchange]
    }

    /// An open connection.
    public struct Connection: Sendable {
        /// The address of the server or proxy.
        public var address: SocketAddress
        /// The version of HTTP that it speaks.
        public var httpVersion: HTTPVersion
        /// The time since it was established.
        public var age: Duration
        /// The time for which it has been idle; `nil` if it carries an exchange.
        public var idle: Duration?
        /// The exchanges on it, oldest first; several over HTTP/2.
        public var exchanges: [Exchange]
    }

    /// An exchange that has not ended.
    public struct Exchange: Sendable {
        /// The method and the URL without secrets.
        public var request: String
        /// The step that it waits for.
        public var phase: TransportError.TimeoutPhase
        /// The time since its beginning.
        public var elapsed: Duration
        /// The bytes of the request's body that were sent.
        public var sent: TransferProgress
        /// The bytes of the response's body that were received.
        public var received: TransferProgress
    }

    /// A task that has not ended.
    public struct TaskEntry: Sendable {
        /// The ``AnySessionTask/id`` of the task.
        public var id: UInt64
        /// The method and the URL without secrets; `nil` if the request could not be created.
        public var request: String?
        /// The state of the task; ``TaskState/waiting`` for one that waits because of
        /// ``SessionConfiguration/maximumConcurrentTasks``.
        public var state: TaskState
        /// The progress in the task's main direction; `nil` before the first report, and for an async function.
        public var progress: TransferProgress?
    }
}

extension SessionManager {
    /// Returns the connections, exchanges, tasks and cache of this moment, for a log or a debugging endpoint.
    ///
    /// The event loop of the session copies references and numbers of at most 64 connections or exchanges in a turn, in less
    /// than 1 ms; exchanges that begin or end meanwhile may be missing. The texts are made in the calling task. Without
    /// libcurl's transport, there are no hosts.
    public nonisolated func snapshot() async -> SessionSnapshot {
        let transport = await pipeline.transport.features.snapshot()
        return SessionSnapshot(transport, tasks: registry.tasks, cache: configuration.cache?.usage)
    }
}

extension SessionSnapshot {
    /// Combines what the transport and the session know.
    package init(_ transport: TransportSnapshot, tasks: [AnySessionTask], cache: ResponseCache.Usage?) {
        let exchanges = transport.exchanges.sorted { $0.elapsed > $1.elapsed }
        let onConnection = Dictionary(grouping: exchanges.filter { $0.connection != nil }) { $0.connection }
        let ids = Set(transport.connections.map(\.id))
        var hosts: [String: Host] = [:]
        for connection in transport.connections.sorted(by: { $0.age > $1.age }) {
            let current = onConnection[connection.id] ?? []
            hosts[connection.origin, default: Host(origin: connection.origin, connections: [], waiting: [])]
                .connections.append(
                    Connection(
                        address: connection.address, httpVersion: connection.version, age: connection.age,
                        idle: current.isEmpty ? connection.sinceLastEnd ?? .zero : nil,
                        exchanges: current.map(Exchange.init)))
        }
        for exchange in exchanges where !(exchange.connection.map(ids.contains) ?? false) {
            hosts[exchange.origin, default: Host(origin: exchange.origin, connections: [], waiting: [])]
                .waiting.append(Exchange(exchange))
        }
        self.hosts = hosts.values.sorted { $0.origin < $1.origin }
        self.tasks = tasks.map(TaskEntry.init)
        self.cache = cache
    }
}

extension SessionSnapshot.Exchange {
    fileprivate init(_ exchange: TransportSnapshot.Exchange) {
        self.init(
            request: exchange.request.description, phase: exchange.phase, elapsed: exchange.elapsed,
            sent: exchange.sent, received: exchange.received)
    }
}

extension SessionSnapshot.TaskEntry {
    fileprivate init(_ task: AnySessionTask) {
        let status = task.status
        self.init(
            id: task.id, request: task.request?.description, state: status.state,
            progress: task.kind == .upload ? status.uploadProgress : status.downloadProgress)
    }
}

extension SessionSnapshot: CustomStringConvertible {
    /// The snapshot as a tree of lines, without secrets.
    public var description: String {
        let connections = hosts.reduce(0) { $0 + $1.connections.count }
        let waiting = hosts.reduce(0) { $0 + $1.waiting.count }
        var summary = [count(tasks.count, "task"), count(connections, "connection")]
        if waiting > 0 { summary.append(waiting == 1 ? "1 exchange waits" : "\(waiting) exchanges wait") }
        var branches = hosts.map(\.tree)
        if !tasks.isEmpty { branches.append(Tree("tasks", tasks.map { Tree($0.line) })) }
        if let cache {
            branches.append(
                Tree(
                    "cache: \(count(cache.entries, "response")), \(cache.memoryBytes) bytes in memory, "
                        + "\(cache.diskBytes) bytes on disk"))
        }
        return Tree("session: " + summary.joined(separator: ", "), branches).lines.map(\.printable)
            .joined(separator: "\n")
    }
}

private func count(_ number: Int, _ noun: String) -> String { "\(number) \(noun)\(number == 1 ? "" : "s")" }

extension SessionSnapshot.Host {
    fileprivate var tree: Tree { Tree(origin, connections.map(\.tree) + waiting.map { Tree($0.line) }) }
}

extension SessionSnapshot.Connection {
    fileprivate var tree: Tree {
        let state = idle.map { "idle for \($0.forPeople)" } ?? "busy"
        return Tree("\(address), \(httpVersion), \(state), \(age.forPeople) old", exchanges.map { Tree($0.line) })
    }
}

extension SessionSnapshot.Exchange {
    fileprivate var line: String {
        var line = "\(request): \(phase.name)"
        if phase == .request { line += sent.size } else if phase == .responseBody { line += received.size }
        return line + ", after \(elapsed.forPeople)"
    }
}

extension SessionSnapshot.TaskEntry {
    fileprivate var line: String { "#\(id)\(request.map { " \($0)" } ?? ""): \(state)\(progress?.size ?? "")" }
}

extension TransferProgress {
    /// The bytes as the end of a clause.
    fileprivate var size: String { ", \(completedBytes)\(totalBytes.map { " of \($0)" } ?? "") bytes" }
}

/// A line with the lines below it.
private struct Tree {
    let title: String
    let branches: [Tree]

    init(_ title: String, _ branches: [Tree] = []) {
        self.title = title
        self.branches = branches
    }

    var lines: [String] {
        [title]
            + branches.enumerated().flatMap { index, branch in
                let isLast = index == branches.count - 1
                return branch.lines.enumerated().map { number, line in
                    (number == 0 ? (isLast ? "└── " : "├── ") : (isLast ? "    " : "│   ")) + line
                }
            }
    }
}
