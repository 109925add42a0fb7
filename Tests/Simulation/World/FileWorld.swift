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
        var disk = Disk()
        /// The directory in which the last operation has perhaps changed a name.
        var changed: String?
        var crash: Crash?
    }

    /// What a crash has left.
    private struct Crash: Sendable {
        /// The system call before which the program crashed.
        let call: String
        let files: [String: Disk.File]
        /// The calls that had succeeded, and those that were sending bytes of an upload that had been created.
        let completed: Set<Int>
        let uploads: Set<Int>
    }

    init(_ world: SimulatedWorld, _ ledger: Ledger, _ program: Program) throws {
        self.world = world
        self.ledger = ledger
        self.program = program
        // The name is no part of what a seed determines, but its length is.
        path = "/dev/shm/an-simulation-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        guard program.family.isDurable || [.files, .resumable].contains(program.family) else { return }
        world.onFileChange { [weak self] call, path in
            self?.willPerform(call, path)
        } writing: { [world, ledger, rate = settings.shortWriteRate] count in
            guard world.chance(rate) else { return count }
            ledger.cover("fileFault.shortWrite")
            return world.random(in: 1...count)
        }
    }

    private func willPerform(_ call: String, _ path: String?) -> Int32? {
        // Directories are flushed only where power fails. The file system in memory stores bytes at once.
        guard call != "close", call != "fsync" || program.family.isDurable else { return nil }
        if call == "pread" || call == "lseek" {
            guard settings.readFaultRate > 0, world.chance(settings.readFaultRate) else { return nil }
            ledger.cover("fileFault.\(call)")
            return EIO
        }
        noteNames()
        let error = fault(of: call)
        let isKept = call == "fdatasync" || settings.losesPower && ["rename", "unlink"].contains(call)
        let file = isKept ? path.flatMap(file) : nil
        state.withLock { state in
            switch call {
            case "write": state.disk.write()
            case "fdatasync": if let file { state.disk.flush(file, fails: error != nil) }
            case "fsync" where error == nil: if let path { state.disk.flush(directory: local(path)) }
            case "open", "rename", "link", "unlink":
                state.changed = path.map(FileLocation.init(unresolved:))?.directory
                if let file { state.disk.willLoseName(file) }
            default: break
            }
        }
        return error
    }

    /// Notes the change of a name by the last operation.
    private func noteNames() {
        guard settings.losesPower, let directory = state.withLock({ $0.changed.take() }) else { return }
        let paths = ((try? FileLocation.names(in: directory)) ?? []).map { "\(directory)/\($0)" }
        let files = paths.filter { !isOfProgram(local($0)) }.compactMap { path in
            file(at: path).map { (local(path), $0.number) }
        }
        state.withLock { $0.disk.note(Dictionary(uniqueKeysWithValues: files), in: local(directory)) }
    }

    /// Whether the program itself has written a file, and flushed it.
    private func isOfProgram(_ name: String) -> Bool { name.hasPrefix("u") && !name.contains(".") }

    /// The path of a file within the directory.
    private func local(_ path: String) -> String { String(path.dropFirst(self.path.count + 1)) }

    /// The regular file of a name; `nil` if there is none.
    private func file(at path: String) -> Disk.File? {
        var status = stat()
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let data = FileManager.default.contents(atPath: path) ?? Data()
        return Disk.File(number: Int(status.st_ino), mode: Int(status.st_mode & 0o777), data: data)
    }

    private func fault(of call: String) -> Int32? {
        let number = state.withLock { state in
            state.operations += 1
            return state.operations
        }
        if number == settings.crashesAt { crash(before: call) }
        if number == settings.vanishesAt || number == settings.cacheVanishesAt {
            ledger.cover(number == settings.vanishesAt ? "vanish.all" : "vanish.cache")
            ledger.update { $0.filesVanished = true }
            try? FileManager.default.removeItem(atPath: number == settings.vanishesAt ? path : "\(path)/cache")
        }
        if call == "rename", settings.crossingRate > 0, world.chance(settings.crossingRate) {
            ledger.cover("fileFault.crossing")
            return EXDEV
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

    private func crash(before call: String) {
        ledger.cover("crash.\(call)")
        let files = files()
        let uploads = ledger.facts.arrivals.filter { $0.isOpen && !$0.hasHead && UploadOrigin.continues($0.request) }
        let completed = ledger.facts.calls.filter { $0.value.end != nil && $0.value.failure == nil }
        state.withLock { state in
            var left = state.disk.remains(of: files)
            if settings.losesPower {
                ledger.cover("crash.power")
                var random = SplitMix64(seed: program.seed ^ 0xD15C)
                let lost = files.filter { !isOfProgram($0.key) }
                left = files.filter { isOfProgram($0.key) }
                    .merging(state.disk.remains(of: lost, afterPowerFailure: &random)) { $1 }
            }
            state.crash = Crash(
                call: call, files: left, completed: Set(completed.keys), uploads: Set(uploads.map(\.call)))
        }
    }

    /// All files, by their paths within the directory.
    func files() -> [String: Disk.File] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: path)) ?? []
        let files = names.compactMap { name in file(at: "\(path)/\(name)").map { (name, $0) } }
        return Dictionary(uniqueKeysWithValues: files)
    }

    /// The system call before which the program crashed, after its files were put back as they were left then; `nil` if it
    /// did not crash.
    func restoreCrash() throws -> String? {
        world.onFileChange(nil)
        guard let crash = state.withLock({ $0.crash }) else { return nil }
        let now = files()
        // A file that was not changed keeps its identity, by which an upload knows it again.
        let kept = program.family == .files ? [:] : crash.files.filter { now[$0.key] == $0.value }
        for name in now.keys where kept[name] == nil { try FileManager.default.removeItem(atPath: "\(path)/\(name)") }
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        var paths: [Int: String] = [:]
        for (name, file) in crash.files.sorted(by: { $0.key < $1.key }) where kept[name] == nil {
            let path = "\(path)/\(name)"
            try FileManager.default.createDirectory(
                atPath: FileLocation(unresolved: path).directory, withIntermediateDirectories: true)
            if let other = paths[file.number] {
                try FileManager.default.linkItem(atPath: other, toPath: path)
                continue
            }
            paths[file.number] = path
            try file.data.write(to: URL(filePath: path))
            try FileManager.default.setAttributes(
                [.modificationDate: world.date, .posixPermissions: file.mode], ofItemAtPath: path)
        }
        return crash.call
    }

    /// Whether a call had succeeded before the program crashed.
    func hasCompleted(_ call: Int) -> Bool { state.withLock { $0.crash?.completed.contains(call) } ?? false }

    /// Whether the program crashed while it sent bytes of an upload of a call that the server had created.
    func wasContinuing(_ call: Int) -> Bool { state.withLock { $0.crash?.uploads.contains(call) } ?? false }

    /// Whether the upload of a file has a record with the URL of the upload on the server.
    func hasRecord(of name: String) -> Bool {
        struct Record: Decodable {
            struct Known: Decodable { let url: URL }
            let known: Known?
        }
        return files().contains { other, file in
            other.hasPrefix("\(name).") && other.hasSuffix(".upload")
                && (try? JSONDecoder().decode(Record.self, from: file.data))?.known != nil
        }
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }
}
