// SPDX-License-Identifier: MIT

import Dispatch
import FoundationEssentials
import FuzzTargets
import Glibc

/// Runs a target: `AN_FUZZ_TARGET=json Fuzz FILE…`.
///
/// If it is built by `make fuzz`, libFuzzer interprets the arguments and changes the inputs; see
/// https://llvm.org/docs/LibFuzzer.html. Otherwise each file is checked once.
@main
enum Fuzz {
    private static let name = ProcessInfo.processInfo.environment["AN_FUZZ_TARGET"]
    private static let target = FuzzTarget.all.first { $0.name == name }

    static func main() throws {
        guard target != nil else {
            print("Set AN_FUZZ_TARGET to one of: \(FuzzTarget.all.map(\.name).joined(separator: " "))")
            exit(2)
        }
        #if FUZZING
            var count = CommandLine.argc
            var arguments = unsafe CommandLine.unsafeArgv
            unsafe exit(
                runDriver(&count, &arguments) { start, count in
                    unsafe Fuzz.check(Array(UnsafeBufferPointer(start: start, count: count)))
                    return 0
                })
        #else
            for path in CommandLine.arguments.dropFirst() {
                check([UInt8](try Data(contentsOf: URL(filePath: path))))
            }
        #endif
    }

    /// Ends the process if the target fails.
    private static func check(_ input: [UInt8]) {
        switch target?.check {
        case .parser(let check):
            do { try check(input) } catch { fail(error) }
        case .client(let check):
            let isDone = DispatchSemaphore(value: 0)
            Task {
                do { try await check(input) } catch { fail(error) }
                isDone.signal()
            }
            isDone.wait()
            let descriptors = try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
            if descriptors ?? 0 > 200 { fail(Violation(description: "\(descriptors ?? 0) descriptors are open")) }
        case nil: break
        }
    }

    private static func fail(_ error: any Error) -> Never {
        print(error)
        fflush(nil)
        abort()
    }
}

#if FUZZING
    /// The entry point of libFuzzer as a library.
    @_silgen_name("LLVMFuzzerRunDriver")
    private func runDriver(
        _ count: UnsafeMutablePointer<CInt>,
        _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
        _ check: @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt
    ) -> CInt
#endif
