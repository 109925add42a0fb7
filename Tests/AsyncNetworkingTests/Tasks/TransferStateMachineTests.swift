// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct TransferStateMachineTests {
    private enum Input: CaseIterable {
        case resume, admit, suspend, cancel, finish
    }

    /// The effect of an input: the next state, and the demand to the scheduler; `admit` itself has none.
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

    /// The inputs that lead to each state, and the effect of each further input, in the order of ``Input``.
    private static let table: [(way: [Input], outcomes: [Outcome])] = [
        // Suspended, never resumed.
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
        // Suspended after it ran: its place is free.
        (
            [.resume, .admit, .suspend],
            [
                .step(.waiting, .place), .place(.suspended, taken: false), .step(.suspended, nil),
                .step(.cancelling, .nothing), .step(.finished, .nothing),
            ]
        ),
        // Cancelled while running: it keeps its place until it has ended.
        (
            [.resume, .admit, .cancel],
            [
                .step(.cancelling, nil), .place(.cancelling, taken: false), .step(.cancelling, nil),
                .step(.cancelling, nil), .step(.finished, .freePlace),
            ]
        ),
        // Cancelled while waiting: it has no place to free.
        (
            [.resume, .cancel],
            [
                .step(.cancelling, nil), .place(.cancelling, taken: false), .step(.cancelling, nil),
                .step(.cancelling, nil), .step(.finished, .nothing),
            ]
        ),
        // Finished.
        (
            [.resume, .admit, .finish],
            [
                .step(.finished, nil), .place(.finished, taken: false), .step(.finished, nil),
                .step(.finished, nil), .step(.finished, nil),
            ]
        ),
    ]

    @Test(arguments: table.indices)
    func `each input follows the table`(row: Int) {
        let (way, outcomes) = Self.table[row]
        for (input, expected) in zip(Input.allCases, outcomes) {
            var machine = TransferStateMachine()
            for step in way { _ = Self.apply(step, to: &machine) }
            #expect(Self.apply(input, to: &machine) == expected, "\(input) after \(way)")
        }
    }

    @Test func `a place is freed exactly once, for every sequence of inputs`() {
        // For all sequences of six inputs, the numbers of places taken and freed must be equal at the end.
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

    @Test func `it records whether the task was ever resumed`() {
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

    @Test func `at most the limit is admitted, first in, first out`() {
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

    @Test func `a higher priority is admitted first, and equal ones in FIFO order`() {
        var line = TransferLine<String>(limit: 10)
        line.join("low 1", id: 1, priority: .low)
        line.join("normal 1", id: 2, priority: .normal)
        line.join("high 1", id: 3, priority: .high)
        line.join("low 2", id: 4, priority: .low)
        line.join("high 2", id: 5, priority: .high)
        line.join("normal 2", id: 6, priority: .normal)
        #expect(drain(&line) == ["high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"])
    }

    @Test func `a change of priority keeps the time of arrival`() {
        var line = TransferLine<String>(limit: 10)
        line.join("a", id: 1, priority: .normal)
        line.join("b", id: 2, priority: .high)
        line.join("c", id: 3, priority: .normal)
        line.move(id: 3, to: .high)
        line.move(id: 1, to: .high)
        line.move(id: 9, to: .high)
        #expect(drain(&line) == ["a", "b", "c"])
    }

    @Test func `a removed element is not admitted`() {
        var line = TransferLine<String>(limit: 1)
        line.join("a", id: 1, priority: .normal)
        line.join("b", id: 2, priority: .normal)
        line.leave(id: 1)
        line.leave(id: 7)
        #expect(drain(&line) == ["b"])
    }

    @Test(arguments: [0, -5])
    func `a limit below one counts as one`(limit: Int) {
        var line = TransferLine<String>(limit: limit)
        line.join("a", id: 1, priority: .normal)
        line.join("b", id: 2, priority: .normal)
        #expect(drain(&line) == ["a"])
    }

    @Test(arguments: [(-1.0, 0.0), (0.3, 0.3), (7, 1), (.nan, 0), (.infinity, 1)])
    func `a priority is clamped to 0 to 1`(given: Double, expected: Double) {
        #expect(TransferPriority(rawValue: given).rawValue == expected)
    }
}
