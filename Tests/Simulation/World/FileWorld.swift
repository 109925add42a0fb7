// SPDX-License-Identifier: MIT

import ANSystem
import AsyncNetworkingTesting
import FoundationEssentials
import Glibc

/// The directory of a program's files, with operations that fail, and a crash at one of them.
final class FileWorld: Sendable {
    let path: String
    private let world: SimulatedWorld
    private let ledger: Ledger
    private var settings: Program.Settings { program.settings }
    private let program: Program
    private let state = Lock(State())

    private struct State: Sendable {
        var operations = 0
        var crash: [String: Data]?
        var crashedAt: String?
        /// What was on the disk after the last flush of each file.
        var flushed: [String: Data] = [:]
        /// The files whose last flush failed, and whether something was written since: if not, the next flush reports
        /// success although the bytes are lost.
        var failed: [String: Bool] = [:]

        mutating func perform(_ call: String, _ path: String?, _ error: Int32?) {
            switch (call, path) {
            case ("fdatasync", let path?) where error != nil: failed[path] = false
            case ("fdatasync", let path?) where failed[path] != false:
                failed[path] = nil
                flushed[path] = FileManager.default.contents(atPath: path)
            case ("write", _): failed = failed.mapValues { _ in true }
            case ("open", let path?), ("rename", let path?): (flushed[path], failed[path]) = (nil, nil)
            default: break
            }
        }

        /// Returns what a crash leaves of a file: not the bytes that a flush has lost.
        func remains(of data: Data, at path: String) -> Data {
            guard failed[path] != nil else { return data }
            let flushed = flushed[path] ?? Data()
            return Data(data.enumerated().map { $0 < flushed.count && flushed[$0] == $1 ? $1 : 0 })
        }
    }

    init(_ world: SimulatedWorld, _ ledger: Ledger, _ program: Program) throws {
        self.world = world
        self.ledger = ledger
        self.program = program
        // The name is no part of what a seed determines, but its length is.
        path = "/dev/shm/an-simulation-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard program.family == .files || program.family == .resumable else { return }
        world.onFileChange { [weak self] call, path in
            self?.willPerform(call, path)
        } writing: { [world, ledger, rate = settings.shortWriteRate] count in
            guard world.chance(rate) else { return count }
            ledger.cover("fileFault.shortWrite")
            return world.random(in: 1...count)
        }
    }

    private func willPerform(_ call: String, _ path: String?) -> Int32? {
        let error = fault(of: call)
        state.withLock { $0.perform(call, path, error) }
        return error
    }

    private func fault(of call: String) -> Int32? {
        let number = state.withLock { state in
            state.operations += 1
            return state.operations
        }
        if number == settings.crashesAt {
            ledger.cover("crash.\(call)")
            let files = files()
            state.withLock { state in
                let left = files.map { ($0, state.remains(of: $1, at: "\(path)/\($0)")) }
                (state.crash, state.crashedAt) = (Dictionary(uniqueKeysWithValues: left), call)
            }
        }
        if number == settings.vanishesAt || number == settings.cacheVanishesAt {
            ledger.cover(number == settings.vanishesAt ? "vanish.all" : "vanish.cache")
            ledger.update { $0.filesVanished = true }
            try? FileManager.default.removeItem(atPath: number == settings.vanishesAt ? path : "\(path)/cache")
        }
        guard call != "unlink", world.chance(settings.fileFaultRate) else { return nil }
        ledger.cover("fileFault.\(call)")
        switch call {
        case "open": return [EMFILE, ENOSPC, EACCES][world.random(in: 0...2)]
        case "reopen": return EMFILE
        case "write": return [ENOSPC, EIO][world.random(in: 0...1)]
        default: return EIO
        }
    }

    /// All files, by their paths within the directory.
    func files() -> [String: Data] {
        var files: [String: Data] = [:]
        for name in (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? [] {
            var isDirectory = false
            let file = "\(path)/\(name)"
            guard FileManager.default.fileExists(atPath: file, isDirectory: &isDirectory), !isDirectory else {
                continue
            }
            files[name] = FileManager.default.contents(atPath: file)
        }
        return files
    }

    /// The system call before which the program crashed, after its files were put back as they were then; `nil` if it
    /// did not crash.
    func restoreCrash() throws -> String? {
        world.onFileChange(nil)
        guard let (files, call) = state.withLock({ state in state.crash.map { ($0, state.crashedAt ?? "") } }) else {
            return nil
        }
        let now = self.files()
        for name in now.keys where files[name] == nil { try FileManager.default.removeItem(atPath: "\(path)/\(name)") }
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        // A file that was not changed keeps its identity, by which an upload knows it again.
        for (name, data) in files where program.family == .files || now[name] != data {
            let file = "\(path)/\(name)"
            let directory = file.prefix(upTo: file.lastIndex(of: "/") ?? file.startIndex)
            try FileManager.default.createDirectory(atPath: String(directory), withIntermediateDirectories: true)
            try data.write(to: URL(filePath: file))
            try FileManager.default.setAttributes([.modificationDate: world.date], ofItemAtPath: file)
        }
        return call
    }

    /// Whether the upload of a file has a record with the URL of the upload on the server.
    func hasRecord(of name: String) -> Bool {
        struct Record: Decodable {
            struct Known: Decodable { let url: URL }
            let known: Known?
        }
        return files().contains { file, data in
            file.hasPrefix("\(name).") && file.hasSuffix(".upload")
                && (try? JSONDecoder().decode(Record.self, from: data))?.known != nil
        }
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }
}
