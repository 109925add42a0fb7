// SPDX-License-Identifier: MIT

import ANCurl
import Testing

@Suite struct UploadStateMachineTests {
    private typealias Machine = UploadStateMachine<String>

    @Test func `the pump goes on while there is room and otherwise waits`() {
        var machine = Machine(capacity: 10)
        #expect(machine.order == .goOn)
        #expect(machine.wait("pump", buffered: 9) == "pump")
        #expect(machine.wait("pump", buffered: 10) == nil)
        #expect(machine.consume(left: 10) == nil)
        #expect(machine.consume(left: 9) == "pump")
        #expect(machine.consume(left: 0) == nil, "It is handed out once.")
    }

    @Test func `a task that writes after the end of the body is let go`() {
        var machine = Machine(capacity: 10)
        #expect(machine.wait("left behind", buffered: 10) == nil)
        #expect(machine.takesBytes)
        #expect(machine.finish(failed: false) == false)
        #expect(!machine.takesBytes)
        #expect(machine.waitForOrder("pump") == "left behind")
        #expect(machine.wait("left behind", buffered: 10) == "left behind", "The pump goes on waiting.")
        #expect(machine.stop() == "pump")
        #expect(machine.waitForOrder("pump") == "pump")
    }

    @Test func `a write of an earlier pass is told to start again`() {
        var machine = Machine(capacity: 10)
        _ = machine.look(buffered: 0)
        #expect(machine.order(in: 0) == .goOn)
        #expect(machine.rewind() == nil)
        #expect(machine.order(in: 0) == .restart)
        machine.begin()
        #expect(machine.pass == 1)
        #expect(machine.order(in: 0) == .restart)
        #expect(machine.order(in: 1) == .goOn)
        _ = machine.stop()
        #expect(machine.order(in: 0) == .stop)
    }

    @Test func `the pump begins when the loop first looks for bytes`() {
        var machine = Machine(capacity: 10)
        #expect(machine.waitForDemand("pump") == nil)
        #expect(machine.rewind() == nil, "There is nothing to produce again.")
        #expect(machine.order == .goOn)
        #expect(machine.look(buffered: 0) == .starving)
        #expect(machine.consume(left: 0) == "pump")
        #expect(machine.waitForDemand("pump") == "pump")
    }

    @Test func `the pump begins on demand`() {
        var machine = Machine(capacity: 10)
        #expect(machine.waitForDemand("pump") == nil)
        #expect(machine.demand() == "pump")
        #expect(machine.demand() == nil)
        #expect(machine.waitForDemand("pump") == "pump")
        let mustTell = machine.finish(failed: false)
        #expect(!mustTell, "The loop has not looked for bytes.")
    }

    @Test func `a pump that has not begun ends with the exchange`() {
        var machine = Machine(capacity: 10)
        #expect(machine.waitForDemand("pump") == nil)
        #expect(machine.stop() == "pump")
        #expect(machine.order == .stop)
        #expect(machine.waitForDemand("pump") == "pump")
    }

    @Test func `a loop that starves is told once that there are bytes`() {
        var machine = Machine(capacity: 10)
        #expect(machine.produce() == false)
        #expect(machine.look(buffered: 5) == .bytes)
        #expect(machine.look(buffered: 0) == .starving)
        #expect(machine.look(buffered: 0) == .starving)
        #expect(machine.produce() == true)
        #expect(machine.produce() == false)
    }

    @Test func `the end comes after the last byte, and the pump stays for a second time`() {
        var machine = Machine(capacity: 10)
        #expect(machine.finish(failed: false) == false)
        #expect(machine.look(buffered: 1) == .bytes)
        #expect(machine.look(buffered: 0) == .end)
        #expect(machine.waitForOrder("pump") == nil)
        #expect(machine.consume(left: 0) == nil, "There is room, but nothing to produce.")
        #expect(machine.stop() == "pump")
        #expect(machine.order == .stop)
    }

    @Test func `a starving loop is told of the end and of a failure`() {
        for failed in [false, true] {
            var machine = Machine(capacity: 10)
            #expect(machine.look(buffered: 0) == .starving)
            #expect(machine.finish(failed: failed) == true)
            #expect(machine.look(buffered: 0) == (failed ? .failed : .end))
        }
    }

    @Test func `bytes before a failure are still sent`() {
        var machine = Machine(capacity: 10)
        _ = machine.finish(failed: true)
        #expect(machine.look(buffered: 1) == .bytes)
        #expect(machine.look(buffered: 0) == .failed)
    }

    @Test func `a finished body is produced again when the loop rewinds`() {
        var machine = Machine(capacity: 10)
        _ = machine.look(buffered: 0)
        _ = machine.finish(failed: false)
        #expect(machine.waitForOrder("pump") == nil)
        #expect(machine.rewind() == "pump")
        #expect(machine.order == .restart)
        #expect(machine.look(buffered: 0) == .starving, "The end of the first time is not the end of the second.")
        machine.begin()
        #expect(machine.order == .goOn)
        #expect(machine.produce() == true)
        #expect(machine.finish(failed: false) == false)
        #expect(machine.look(buffered: 0) == .end)
    }

    @Test func `a pump that was producing hears of the rewinding when it would wait or finish`() {
        var machine = Machine(capacity: 10)
        _ = machine.look(buffered: 0)
        #expect(machine.rewind() == nil)
        #expect(machine.order == .restart)
        #expect(machine.finish(failed: true) == false, "What the first time came to is of no interest.")
        #expect(machine.order == .restart)
        #expect(machine.wait("pump", buffered: 100) == "pump")
        machine.begin()
        #expect(machine.look(buffered: 0) == .starving)
    }

    @Test func `a failed body can be rewound too`() {
        var machine = Machine(capacity: 10)
        _ = machine.look(buffered: 0)
        _ = machine.finish(failed: true)
        #expect(machine.rewind() == nil)
        machine.begin()
        #expect(machine.look(buffered: 0) == .starving)
    }

    @Test func `begin means nothing unless the body was rewound`() {
        var machine = Machine(capacity: 10)
        machine.begin()
        _ = machine.finish(failed: false)
        machine.begin()
        #expect(machine.look(buffered: 0) == .end)
    }

    @Test func `after the end of the exchange the pump only stops`() {
        var machine = Machine(capacity: 10)
        #expect(machine.wait("pump", buffered: 50) == nil)
        #expect(machine.stop() == "pump")
        #expect(machine.order == .stop)
        #expect(machine.rewind() == nil)
        #expect(machine.order == .stop)
        machine.begin()
        #expect(machine.order == .stop)
        #expect(machine.finish(failed: false) == false)
        #expect(machine.wait("pump", buffered: 50) == "pump")
        #expect(machine.look(buffered: 0) == .failed)
        #expect(machine.stop() == nil)
    }
}
