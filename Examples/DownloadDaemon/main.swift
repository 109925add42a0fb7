// SPDX-License-Identifier: MIT

// Downloads files into a directory, and continues after it was killed, also by SIGKILL. SIGTERM ends it in order.
//
//     swift run DownloadDaemon                  a daemon that this program kills and starts again, and a server
//     swift run DownloadDaemon DIRECTORY URL…

import AsyncNetworking
import AsyncNetworkingTesting
import Foundation

/// Downloads the files that are missing, and those that an earlier process left unfinished. Returns whether none has failed.
func download(_ urls: [URL], to directory: String) async throws -> Bool {
    let api = SessionManager {
        $0.retryPolicy = RetryPolicy(limit: 10)
        $0.maximumConcurrentTasks = 4
    }
    // Unfinished downloads are cancelled two seconds after SIGTERM, and keep what has arrived.
    let ending = Task { try await api.shutdownOnSignal(draining: .seconds(2)) }
    defer { ending.cancel() }
    let options = DownloadOptions.durable
    var tasks = try api.restoredDownloads(in: directory, options: options)
    let restored = Set(tasks.compactMap { $0.request?.url })
    var haveNames = true
    for url in urls where !restored.contains(url) {
        guard let name = url.suggestedFilename else {
            print("Failed: \(url) has no file name")
            haveNames = false
            continue
        }
        let path = "\(directory)/\(name)"
        guard !FileManager.default.fileExists(atPath: path) else { continue }
        tasks.append(api.makeDownloadTask(for: Request(url: url), to: .file(path), options: options))
    }
    let areComplete = await withTaskGroup { group in
        for task in tasks {
            task.resume()
            group.addTask {
                for await case .continued(let offset, _) in task.events { print("Continued after \(offset) bytes") }
                return await end(of: task)
            }
        }
        return await group.allSatisfy(\.self)
    }
    return haveNames && areComplete
}

/// Prints how a download has ended, and returns `false` if it has failed; the others go on.
func end(of task: DownloadTask) async -> Bool {
    do {
        print("Complete: \(try await task.value.size) bytes")
        return true
    } catch SessionError.invalidated {
        // Not begun before SIGTERM.
        return true
    } catch is CancellationError {
        print("Unfinished")
        return true
    } catch {
        print("Failed: \(error)")
        return false
    }
}

/// Starts the daemon, kills it when a part of the file has arrived, and starts it again.
func demonstrate() async throws {
    let bytes = StubServer.generatedBytes(20_000_000)
    try await StubServer.with { server in
        server.route("/disk.iso") { request in
            let isCut = request.headers["Range"] == nil
            return ServedFile(bytes, interruption: isCut ? .hang(after: 10_000_000) : nil).script(for: request)
        }
        let daemon = {
            let directory = FileManager.default.currentDirectoryPath
            return try Process.run(
                URL(filePath: "/proc/self/exe").resolvingSymlinksInPath(),
                arguments: [directory, server.url("/disk.iso").absoluteString])
        }
        let first = try daemon()
        while ResumeData.left(at: "disk.iso")?.offset ?? 0 == 0 { try await Task.sleep(for: .milliseconds(20)) }
        kill(first.processIdentifier, SIGKILL)
        first.waitUntilExit()
        try daemon().waitUntilExit()
        print(try Data(contentsOf: URL(filePath: "disk.iso")) == bytes ? "The file is intact." : "The file is damaged.")
    }
}

let words = CommandLine.arguments
if words.count > 2 {
    let isComplete = try await download(words.dropFirst(2).compactMap { URL(string: $0) }, to: words[1])
    exit(isComplete ? 0 : 1)
} else {
    try await demonstrate()
}
