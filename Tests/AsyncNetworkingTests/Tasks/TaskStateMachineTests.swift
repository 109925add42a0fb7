// SPDX-License-Identifier: MIT

import AsyncNetworking
import Testing

@Suite struct TaskStateMachineTests {
    private enum Input: CaseIterable {
        case resume, admit, suspend, cancel, finish, exchange
    }

    /// The effect of an input: the next state, and the action for the scheduler; `admit` itself has none.
    private struct Outcome: Equatable {
        var state: TaskState
        var action: TaskStateMachine.Action?
        var isAdmitted: Bool?

        static func step(_ state: TaskState, _ action: TaskStateMachine.Action?) -> Outcome {
            Outcome(state: state, action: action)
        }

        static func slot(_ state: TaskState, taken: Bool) -> Outcome {
            Outcome(state: state, isAdmitted: taken)
        }
    }

    private static func apply(_ input: Input, to machine: inout TaskStateMachine) -> Outcome {
        switch input {
        case .resume: let action = machine.resume(); return .step(machine.state, action)
        case .suspend: let action = machine.suspend(); return .step(machine.state, action)
        case .cancel: let action = machine.cancel(); return .step(machine.state, action)
        case .finish: let action = machine.finish(); return .step(machine.state, action)
        case .admit: let taken = machine.admit(); return .slot(machine.state, taken: taken)
        case .exchange: let action = machine.beginExchange(); return .step(machine.state, action)
        }
    }

    /// The inputs that lead to each state, and the effect of each further input, in the order of ``Input``.
    private static let table: [(way: [Input], outcomes: [Outcome])] = [
        // Suspended, never resumed.
        (
            [],
            [
                .step(.waiting, .enqueue), .slot(.suspended, taken: false), .step(.suspended, nil),
                .step(.cancelling, .nothing), .step(.finished, .nothing),
            ]
        ),
        // Waiting.
        (
            [.resume],
            [
                .step(.waiting, nil), .slot(.running, taken: true), .step(.suspended, .dequeue),
                .step(.cancelling, .dequeue), .step(.finished, .dequeue),
            ]
        ),
        // Running.
        (
            [.resume, .admit],
            [
                .step(.running, nil), .slot(.running, taken: false), .step(.suspended, .releaseSlot),
                .step(.cancelling, .nothing), .step(.finished, .releaseSlot),
            ]
        ),
        // Suspended after it ran: its slot is free.
        (
            [.resume, .admit, .suspend],
            [
                .step(.waiting, .enqueue), .slot(.suspended, taken: false), .step(.suspended, nil),
                .step(.cancelling, .nothing), .step(.finished, .nothing),
            ]
        ),
        // Waiting again, before its exchange begins: it then takes a slot.
        (
            [.resume, .admit, .suspend, .resume],
            [
                .step(.waiting, nil), .slot(.running, taken: true), .step(.suspended, .dequeue),
                .step(.cancelling, .dequeue), .step(.finished, .dequeue), .step(.waiting, .takeSlot),
            ]
        ),
        // Suspended after an exchange has begun: it takes another slot when it goes on.
        (
            [.resume, .admit, .exchange, .suspend],
            [
                .step(.waiting, .takeSlot), .slot(.suspended, taken: false), .step(.suspended, nil),
                .step(.cancelling, .nothing), .step(.finished, .nothing),
            ]
        ),
        // Cancelled while running: it keeps its slot until it has ended.
        (
            [.resume, .admit, .cancel],
            [
                .step(.cancelling, nil), .slot(.cancelling, taken: false), .step(.cancelling, nil),
                .step(.cancelling, nil), .step(.finished, .releaseSlot),
            ]
        ),
        // Cancelled while waiting: it has no slot to free.
        (
            [.resume, .cancel],
            [
                .step(.cancelling, nil), .slot(.cancelling, taken: false), .step(.cancelling, nil),
                .step(.cancelling, nil), .step(.finished, .nothing),
            ]
        ),
        // Finished.
        (
            [.resume, .admit, .finish],
            [
                .step(.finished, nil), .slot(.finished, taken: false), .step(.finished, nil),
                .step(.finished, nil), .step(.finished, nil),
            ]
        ),
    ]

    @Test(arguments: table.indices)
    func `each input follows the table`(row: Int) {
        let (way, outcomes) = Self.table[row]
        for (input, expected) in zip(Input.allCases, outcomes) {
            var machine = TaskStateMachine()
            for step in way { _ = Self.apply(step, to: &machine) }
            #expect(Self.apply(input, to: &machine) == expected, "\(input) after \(way)")
        }
    }

    @Test func `a slot is released exactly once, for every sequence of inputs`() {
        // For all sequences of six inputs, the numbers of slots taken and freed must be equal at the end.
        func explore(_ machine: TaskStateMachine, slots: Int, depth: Int) {
            guard depth > 0 else {
                var machine = machine
                let last = machine.finish()
                #expect(slots - (last == .releaseSlot ? 1 : 0) == 0)
                return
            }
            for input in Input.allCases {
                var next = machine
                let outcome = Self.apply(input, to: &next)
                let change = (outcome.isAdmitted == true ? 1 : 0) - (outcome.action == .releaseSlot ? 1 : 0)
                explore(next, slots: slots + change, depth: depth - 1)
            }
        }
        explore(TaskStateMachine(), slots: 0, depth: 6)
    }

    @Test func `it records whether the task was ever resumed`() {
        var machine = TaskStateMachine()
        #expect(!machine.wasResumed)
        _ = machine.resume()
        _ = machine.suspend()
        #expect(machine.wasResumed)
    }
}
