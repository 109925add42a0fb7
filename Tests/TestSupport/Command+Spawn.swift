// SPDX-License-Identifier: MIT

import ANSystem
import CTestSupport
import Glibc

extension Command {
    /// Starts the program with posix_spawn(3) and returns its number. It inherits its three streams and no other
    /// descriptor, ignores no signal and blocks none, and leads a process group of its own.
    ///
    /// - Parameters:
    ///   - output: The descriptor for the standard output, unless the command has one.
    ///   - errors: The descriptor for the standard error, unless the command has one.
    func spawn(output: Int32, errors: Int32) throws(SystemError) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        let streams = [input, self.output ?? .descriptor(output), self.errors ?? .descriptor(errors)]
        for (number, stream) in zip(Int32(0)..., streams) {
            switch stream {
            case .file(let path, let flags):
                unsafe posix_spawn_file_actions_addopen(&actions, number, path, flags, 0o600)
            case .descriptor(let descriptor):
                unsafe posix_spawn_file_actions_adddup2(&actions, descriptor, number)
            }
        }
        unsafe posix_spawn_file_actions_addclosefrom_np(&actions, 3)
        if let directory { unsafe posix_spawn_file_actions_addchdir_np(&actions, directory) }

        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe posix_spawnattr_setsigmask(&attributes, &signals)
        unsafe sigfillset(&signals)
        unsafe posix_spawnattr_setsigdefault(&attributes, &signals)
        // A session leader leads a group, too.
        let group = leadsSession ? 0x80 /* POSIX_SPAWN_SETSID */ : POSIX_SPAWN_SETPGROUP
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group))

        var number = pid_t()
        let variables = (environment ?? [:]).map { "\($0)=\($1)" }
        let code = unsafe withCStrings(words) { words in
            unsafe withCStrings(variables) { variables in
                unsafe posix_spawnp(
                    &number, self.words.first ?? "", &actions, &attributes, words,
                    environment == nil ? Glibc.environ : variables)
            }
        }
        guard code == 0 else { throw SystemError(call: "posix_spawnp", code: code) }
        return number
    }
}

/// Calls a function with a list of C strings that ends with a null pointer.
private func withCStrings<Result>(
    _ strings: [String], _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
) -> Result {
    let pointers = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: strings.count + 1)
    for (index, string) in strings.enumerated() { unsafe pointers[index] = strdup(string) }
    unsafe pointers[strings.count] = nil
    defer {
        for index in strings.indices { unsafe free(pointers[index]) }
        unsafe pointers.deallocate()
    }
    return unsafe body(pointers)
}
