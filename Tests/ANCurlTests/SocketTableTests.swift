// SPDX-License-Identifier: MIT

import ANCurl
import ANSystem
import AsyncNetworkingTesting
import Testing

@Suite struct SocketTableTests {
    @Test func `a connection is added once, changed when needed and parked when let go of`() {
        var table = SocketTable()
        table.didOpen(5)
        #expect(table.want(5, for: .writable) == .add(.writable))
        table.didConnect(5)
        #expect(table.want(5, for: .writable) == .none)
        #expect(table.want(5, for: .readable) == .modify(.readable))
        #expect(table.isWanted(5) == true)
        #expect(table.release(5) == .none)
        #expect(table.want(5, for: .readable) == .none, "It stayed in the set.")
        #expect(table.release(5) == .none)
        #expect(table.want(5, for: [.readable, .writable]) == .modify([.readable, .writable]))
    }

    @Test func `a parked socket that becomes ready is watched for its end, which takes it out of the set`() {
        var table = SocketTable()
        table.didOpen(5)
        table.didConnect(5)
        #expect(table.want(5, for: .readable) == .add(.readable))
        #expect(table.release(5) == .none)
        #expect(table.isWanted(5) == false)
        #expect(table.ignore(5) == .modify(.ended))
        #expect(table.want(5, for: .readable) == .modify(.readable))
        #expect(table.isWanted(5) == true)
        #expect(table.release(5) == .none)
        #expect(table.ignore(5) == .modify(.ended))
        #expect(table.ignore(5) == .remove)
        #expect(table.want(5, for: .readable) == .add(.readable))
    }

    @Test func `a socket that must not be read is watched for its end, until it may be read again`() {
        var table = SocketTable()
        table.didOpen(5, isConnecting: false)
        #expect(table.stopReading(5) == .none)
        #expect(table.want(5, for: [.readable, .writable]) == .add([.readable, .writable]))
        #expect(table.stopReading(5) == .none, "It is written to.")
        #expect(table.want(5, for: .readable) == .modify(.readable))
        #expect(table.readAgain(5) == .none)
        for changes in [[SocketTable.Operation.modify(.ended)], [.modify(.ended), .remove]] {
            for change in changes { #expect(table.stopReading(5) == change) }
            #expect(table.readAgain(5) == (changes.count == 1 ? .modify(.readable) : .add(.readable)))
        }
        #expect(table.stopReading(5) == .modify(.ended))
        #expect(table.release(5) == .none)
        #expect(table.readAgain(5) == .none)
        #expect(table.want(5, for: .readable) == .modify(.readable))
    }

    @Test func `events are held back whatever libcurl asks for, until they need not be`() {
        let both: Readiness = [.readable, .writable]
        var table = SocketTable()
        table.didOpen(5, isConnecting: false)
        #expect(table.hold(5, .readable) == .none, "It is not watched.")
        #expect(table.want(5, for: both) == .add(.writable))
        #expect(table.want(5, for: .readable) == .modify(.ended))
        #expect(table.release(5) == .none)
        #expect(table.want(5, for: both) == .modify(.writable))
        #expect(table.hold(5, both) == .modify(.ended))
        #expect(table.hold(5, both) == .remove, "The end was reported.")
        #expect(table.want(5, for: .writable) == .add(.ended))
        #expect(table.want(5, for: both) == .none)
        #expect(table.readAgain(5) == .modify(both))
        #expect(table.hold(5, .readable) == .modify(.writable))
        #expect(table.willClose(5) == .remove)
        table.didOpen(5, isConnecting: false)
        #expect(table.want(5, for: both) == .add(both), "Another socket has its number.")
    }

    @Test func `closing takes a socket out of the set, and its number begins anew`() {
        var table = SocketTable()
        table.didOpen(5, isConnecting: false)
        #expect(table.want(5, for: .readable) == .add(.readable))
        #expect(table.release(5) == .none)
        #expect(table.willClose(5) == .remove)
        #expect(table.willClose(5) == .none)
        table.didOpen(5)
        #expect(table.isWanted(5) == false)
        #expect(table.want(5, for: .readable) == .add(.readable))
    }

    @Test func `a socket whose closing is not reported is removed when let go of`() {
        var table = SocketTable()
        #expect(table.want(7, for: .readable) == .add(.readable))
        #expect(table.release(7) == .remove)
        #expect(table.release(7) == .none)
        #expect(table.want(7, for: .readable) == .add(.readable))
    }

    @Test func `a connection that is given up while it is made may be closed without notice`() {
        var table = SocketTable()
        table.didOpen(5)
        #expect(table.want(5, for: .writable) == .add(.writable))
        #expect(table.release(5) == .remove)
        // Another socket has its number, whose closing is not reported either.
        for _ in 0..<2 {
            #expect(table.want(5, for: .readable) == .add(.readable))
            #expect(table.release(5) == .remove)
        }
        // Or it is made after all.
        #expect(table.want(5, for: .writable) == .add(.writable))
        table.didConnect(5)
        #expect(table.release(5) == .none)
    }

    @Test func `a connection is being made until it can be used, or is closed`() {
        var table = SocketTable()
        #expect(!table.isConnecting(5))
        table.didOpen(5)
        #expect(table.isConnecting(5))
        _ = table.want(5, for: .writable)
        table.didConnect(5)
        #expect(!table.isConnecting(5) && table.isWanted(5))
        table.didOpen(6)
        _ = table.willClose(6)
        #expect(!table.isConnecting(6))
        table.didOpen(7, isConnecting: false)
        #expect(!table.isConnecting(7))
    }

    @Test func `sockets do not touch each other`() {
        var table = SocketTable()
        table.didOpen(3)
        table.didOpen(1000)
        #expect(table.want(1000, for: .readable) == .add(.readable))
        #expect(table.want(3, for: .writable) == .add(.writable))
        #expect(table.willClose(3) == .remove)
        #expect(table.want(1000, for: .readable) == .none)
        #expect(table.isWanted(4) == false)
    }

    @Test func `a number that is no socket does no harm`() {
        var table = SocketTable()
        #expect(table.release(-1) == .none)
        #expect(table.isWanted(.min) == false)
        #expect(table.willClose(-1) == .none)
    }

    @Test(arguments: 0..<10)
    func `what it says of the set is always true`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var table = SocketTable()
        var open: [Int32: Bool] = [:]
        var set: [Int32: Readiness] = [:]
        var wanted: [Int32: Readiness] = [:]
        for _ in 0..<5000 {
            let socket = Int32.random(in: 0..<6, using: &random)
            switch Int.random(in: 0..<6, using: &random) {
            case 0 where open[socket] == nil:
                // Half of the sockets are connections; the others are libcurl's own, closed without notice.
                open[socket] = Bool.random(using: &random)
                if open[socket] == true { table.didOpen(socket) }
            case 5 where open[socket] == true: table.didConnect(socket)
            case 1 where open[socket] == true:
                apply(table.willClose(socket), to: &set, socket)
                #expect(set[socket] == nil)
                (open[socket], wanted[socket]) = (nil, nil)
            case 2 where open[socket] != nil:
                let choices: [Readiness] = [.readable, .writable, [.readable, .writable]]
                let readiness = choices[Int.random(in: 0..<3, using: &random)]
                apply(table.want(socket, for: readiness), to: &set, socket)
                wanted[socket] = readiness
                #expect(set[socket] == readiness)
            case 3 where wanted[socket] != nil:
                apply(table.release(socket), to: &set, socket)
                wanted[socket] = nil
                if open[socket] == false || table.isConnecting(socket) {
                    #expect(set[socket] == nil)
                    open[socket] = nil
                }
            case 4 where set[socket] != nil:
                #expect(table.isWanted(socket) == (wanted[socket] != nil))
                if wanted[socket] == nil { apply(table.ignore(socket), to: &set, socket) }
            default: break
            }
        }
    }

    private func apply(_ operation: SocketTable.Operation, to set: inout [Int32: Readiness], _ socket: Int32) {
        switch operation {
        case .none: break
        case .add(let readiness):
            #expect(set[socket] == nil)
            set[socket] = readiness
        case .modify(let readiness):
            #expect(set[socket] != nil)
            set[socket] = readiness
        case .remove:
            #expect(set[socket] != nil)
            set[socket] = nil
        }
    }
}
