// SPDX-License-Identifier: MIT

import AsyncNetworking
import TestSupport
import Testing

@Suite struct TaskQueueTests {
    private func drain(_ queue: inout TaskQueue<String>) -> [String] {
        var names: [String] = []
        while let name = queue.admit() { names.append(name) }
        return names
    }

    @Test func `at most the limit is admitted, first in, first out`() {
        var queue = TaskQueue<String>(limit: 2)
        for (id, name) in ["a", "b", "c", "d"].enumerated() { queue.enqueue(name, id: UInt64(id), priority: .normal) }
        #expect(drain(&queue) == ["a", "b"])
        queue.release(id: 0)
        #expect(drain(&queue) == ["c"])
        queue.release(id: 0)
        queue.release(id: 0)
        #expect(drain(&queue) == ["d"])
        #expect(drain(&queue) == [])
    }

    @Test func `an element that is admitted again exceeds the limit until others are released`() {
        var queue = TaskQueue<String>(limit: 1)
        for (id, name) in ["a", "b"].enumerated() { queue.enqueue(name, id: UInt64(id), priority: .normal) }
        #expect(drain(&queue) == ["a"])
        queue.readmit()
        queue.release(id: 0)
        #expect(drain(&queue) == [])
        queue.release(id: 7)
        #expect(drain(&queue) == ["b"])
    }

    @Test func `an element that is admitted freely takes and releases no slot`() {
        var queue = TaskQueue<String>(limit: 1)
        queue.admitFreely(id: 7)
        queue.enqueue("a", id: 1, priority: .normal)
        queue.enqueue("b", id: 2, priority: .normal)
        #expect(drain(&queue) == ["a"])
        queue.release(id: 7)
        #expect(drain(&queue) == [])
        // It has a slot if it is admitted again.
        queue.release(id: 1)
        #expect(drain(&queue) == ["b"])
        queue.release(id: 7)
        queue.enqueue("c", id: 3, priority: .normal)
        #expect(drain(&queue) == ["c"])
    }

    @Test func `a higher priority is admitted first, and equal ones in FIFO order`() {
        var queue = TaskQueue<String>(limit: 10)
        queue.enqueue("low 1", id: 1, priority: .low)
        queue.enqueue("normal 1", id: 2, priority: .normal)
        queue.enqueue("high 1", id: 3, priority: .high)
        queue.enqueue("low 2", id: 4, priority: .low)
        queue.enqueue("high 2", id: 5, priority: .high)
        queue.enqueue("normal 2", id: 6, priority: .normal)
        #expect(drain(&queue) == ["high 1", "high 2", "normal 1", "normal 2", "low 1", "low 2"])
    }

    @Test func `a change of priority keeps the time of arrival`() {
        var queue = TaskQueue<String>(limit: 10)
        queue.enqueue("a", id: 1, priority: .normal)
        queue.enqueue("b", id: 2, priority: .high)
        queue.enqueue("c", id: 3, priority: .normal)
        queue.move(id: 3, to: .high)
        queue.move(id: 1, to: .high)
        queue.move(id: 9, to: .high)
        #expect(drain(&queue) == ["a", "b", "c"])
    }

    @Test func `a removed element is not admitted`() {
        var queue = TaskQueue<String>(limit: 1)
        queue.enqueue("a", id: 1, priority: .normal)
        queue.enqueue("b", id: 2, priority: .normal)
        queue.remove(id: 1)
        queue.remove(id: 7)
        #expect(drain(&queue) == ["b"])
    }

    @Test(arguments: [0, -5])
    func `a limit below one counts as one`(limit: Int) {
        var queue = TaskQueue<String>(limit: limit)
        queue.enqueue("a", id: 1, priority: .normal)
        queue.enqueue("b", id: 2, priority: .normal)
        #expect(drain(&queue) == ["a"])
    }

    @Test(arguments: [(-1.0, 0.0), (0.3, 0.3), (7, 1), (.nan, 0), (.infinity, 1)])
    func `a priority is clamped to 0 to 1`(given: Double, expected: Double) {
        #expect(RequestPriority(rawValue: given).rawValue == expected)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `any sequence of changes admits in the order of a sorted list`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var queue = TaskQueue<UInt64>(limit: .max)
        var model: [(id: UInt64, priority: RequestPriority, arrival: Int)] = []
        let priorities: [RequestPriority] = [.low, .normal, .high]
        for arrival in 0..<300 {
            let id = UInt64.random(in: 0..<40, using: &random)
            let priority = priorities[Int.random(in: 0..<3, using: &random)]
            let index = model.firstIndex { $0.id == id }
            switch Int.random(in: 0..<4, using: &random) {
            case 0, 1:
                guard index == nil else { break }
                queue.enqueue(id, id: id, priority: priority)
                model.append((id, priority, arrival))
            case 2:
                queue.move(id: id, to: priority)
                if let index { model[index].priority = priority }
            default:
                queue.remove(id: id)
                if let index { model.remove(at: index) }
            }
            #expect(queue.positionCount <= 2 * model.count)
            guard arrival.isMultiple(of: 7) else { continue }
            let next = model.min { ($1.priority, $0.arrival) < ($0.priority, $1.arrival) }
            #expect(queue.admit() == next?.id)
            model.removeAll { $0.id == next?.id }
        }
    }
}
