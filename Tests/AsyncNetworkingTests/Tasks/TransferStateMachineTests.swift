// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct TransferStateMachineTests {
    private enum Input: CaseIterable {
        case resume, admit, suspend, cancel, finish
    }

    /// What an input does: the state that follows, and what is asked of the line; `admit` asks for nothing itself.
    private struct Outcome: Equatable {
        var state: TransferState
        var demand: TransferStateMachine.Demand?
        var isAdmitted: Bool?

        static func step(_ state: TransferState, _ demand: TransferStateMachine.Demand?) -> Outcome {
            Outcome(state: state, demand: demand)
        }

        static func place(_ state: TransferState, taken: Bool) -> Outcome {
            Outcome(state: state, isAdmitted: taken)
        }
    }

    private static func apply(_ input: Input, to machine: inout TransferStateMachine) -> Outcome {
        switch input {
        case .resume: let demand = machine.resume(); return .step(machine.state, demand)
        case .suspend: let demand = machine.suspend(); return .step(machine.state, demand)
        case .cancel: let demand = machine.cancel(); return .step(machine.state, demand)
        case .finish: let demand = machine.finish(); return .step(machine.state, demand)
        case .admit: let taken = machine.admit(); return .place(machine.state, taken: taken)
        }
    }

    /// How each state is reached, and what each input does there, in the order of ``Input``.
    private static let table: [(way: [Input], outcomes: [Outcome])] = [
        // Suspended, never started.
        (
            [],
            [
                .step(.waiting, .place), .place(.suspended, taken: false), .step(.suspended, nil),
                .step(.cancelling, .nothing), .step(.finished, .nothing),
            ]
        ),
        // Waiting.
        (
            [.resume],
            [
                .step(.waiting, nil), .place(.running, taken: true), .step(.suspended, .leaveLine),
                .step(.cancelling, .leaveLine), .step(.finished, .leaveLine),
            ]
        ),
        // Running.
        (
            [.resume, .admit],
            [
                .step(.running, nil), .place(.running, taken: false), .step(.suspended, .freePlace),
                .step(.cancelling, .nothing), .step(.finished, .freePlace),
            ]
        ),
        // Suspended after having run: its place is free.
        (
            [.resume, .admit, .suspend],
            [
                .step(.waiting, .place), .place(.suspended, taken: false), .step(.suspended, nil),
                .step(.cancelling, .nothing), .step(.finished, .nothing),
            ]
        ),
        // Cancelled while it ran: it keeps its place until it is over.
        (
            [.resume, .admit, .cancel],
            [
                .step(.cancelling, nil), .place(.cancelling, taken: false), .step(.cancelling, nil),
                .step(.cancelling, nil), .step(.finished, .freePlace),
            ]
        ),
        // Cancelled while it waited: it has no place to free.
        (
            [.resume, .cancel],
            [
                .step(.cancelling, nil), .place(.cancelling, taken: false), .step(.cancelling, nil),
                .step(.cancelling, nil), .step(.finished, .nothing),
            ]
        ),
        // Over.
        (
            [.resume, .admit, .finish],
            [
                .step(.finished, nil), .place(.finished, taken: false), .step(.finished, nil),
                .step(.finished, nil), .step(.finished, nil),
            ]
        ),
    ]

    @Test(arguments: table.indices)
    func `each input does what the table says`(row: Int) {
        let (way, outcomes) = Self.table[row]
        for (input, expected) in zip(Input.allCases, outcomes) {
            var machine = TransferStateMachine()
            for step in way { _ = Self.apply(step, to: &machine) }
            #expect(Self.apply(input, to: &machine) == expected, "\(input) after \(way)")
        }
    }

    @Test func `a place that is taken is freed once, whatever happens`() {
        // All sequences of six inputs: places taken and freed must agree at the end.
        func explore(_ machine: TransferStateMachine, places: Int, depth: Int) {
            guard depth > 0 else {
                var machine = machine
                let last = machine.finish()
                #expect(places - (last == .freePlace ? 1 : 0) == 0)
                return
            }
            for input in Input.allCases {
                var next = machine
                let outcome = Self.apply(input, to: &next)
                let change = (outcome.isAdmitted == true ? 1 : 0) - (outcome.demand == .freePlace ? 1 : 0)
                explore(next, places: places + change, depth: depth - 1)
            }
        }
        explore(TransferStateMachine(), places: 0, depth: 6)
    }

    @Test func `it remembers whether it was ever started`() {
        var machine = TransferStateMachine()
        #expect(!machine.wasResumed)
        _ = machine.resume()
        _ = machine.suspend()
        #expect(machine.wasResumed)
    }
}

@Suite struct TransferLineTests {
    private func drain(_ line: inout TransferLine<String>) -> [String] {
        var names: [String] = []
        while let name = line.admit() { names.append(name) }
        return names
    }

    @Test func `so many work at the same time, first come first served`() {
        var line = TransferLine<String>(limit: 2)
        for (id, name) in ["a", "b", "c", "d"].enumerated() { line.join(name, id: UInt64(id), priority: .normal) }
        #expect(drain(&line) == ["a", "b"])
        line.free()
        #expect(drain(&line) == ["c"])
        line.free()
        line.free()
        #expect(drain(&line) == ["d"])
        #expect(drain(&line) == [])
    }

    @Test func `a higher priority goes first, and among equals who came first`() {
        var line = TransferLine<String>(limit: 10)
        line.join("low 1", id: 1, priority: .low)
        line.join("normal 1", id: 2, priority: .normal)
        line.join("high 1", id: 3, priority: .high)
        line.join("low 2", id: 4, priority: .low)
        line.join("high 2", id: 5, priority: .high)
        line.join("normal 2", id: 6, priority: .normal)
        #expect(drain(&line) == ["high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"])
    }

    @Test func `another priority moves it, and it keeps its time of arrival`() {
        var line = TransferLine<String>(limit: 10)
        line.join("a", id: 1, priority: .normal)
        line.join("b", id: 2, priority: .high)
        line.join("c", id: 3, priority: .normal)
        line.move(id: 3, to: .high)
        line.move(id: 1, to: .high)
        line.move(id: 9, to: .high)
        #expect(drain(&line) == ["a", "b", "c"])
    }

    @Test func `who leaves is not admitted`() {
        var line = TransferLine<String>(limit: 1)
        line.join("a", id: 1, priority: .normal)
        line.join("b", id: 2, priority: .normal)
        line.leave(id: 1)
        line.leave(id: 7)
        #expect(drain(&line) == ["b"])
    }

    @Test(arguments: [0, -5])
    func `no limit is below one`(limit: Int) {
        var line = TransferLine<String>(limit: limit)
        line.join("a", id: 1, priority: .normal)
        line.join("b", id: 2, priority: .normal)
        #expect(drain(&line) == ["a"])
    }

    @Test(arguments: [(-1.0, 0.0), (0.3, 0.3), (7, 1), (.nan, 0), (.infinity, 1)])
    func `a priority lies between 0 and 1`(given: Double, expected: Double) {
        #expect(TransferPriority(rawValue: given).rawValue == expected)
    }
}
