// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Testing

@Suite struct ImageDownloadQueueTests {
    private typealias Queue = ImageDownloadQueue<String>

    @Test(.timeLimit(.minutes(1)), arguments: [ImageDownloadOrder.fifo, .lifo])
    func `many requests wait without a search`(order: ImageDownloadOrder) {
        var queue = ImageDownloadQueue<Int>(limit: 1, order: order)
        for number in 1...50_000 { _ = queue.add(number, key: number) }
        #expect(queue.waitingDownloads.first == (order == .fifo ? 2 : 50_000))
        for number in 3...50_000 { #expect(queue.cancel(number) == .removed(number)) }
        #expect(queue.end(1).next == 2)
    }

    @Test(.timeLimit(.minutes(1))) func `many requests share a download without a search`() {
        var queue = Queue(limit: 1, order: .fifo)
        _ = queue.add(0, key: "first")
        for receipt in 1...100_000 {
            _ = queue.add(receipt, key: "shared", priority: receipt == 50_000 ? .high : .normal)
        }
        for receipt in 2..<100_000 { #expect(queue.cancel(receipt) == .left(2)) }
        #expect(queue.receipts(of: 2) == [1, 100_000])
    }

    @Test func `at most the given number of downloads are active`() {
        var queue = Queue(limit: 2, order: .fifo)
        #expect(queue.add(1, key: "a") == .started(1))
        #expect(queue.add(2, key: "b") == .started(2))
        #expect(queue.add(3, key: "c") == .waiting(3))
        #expect(queue.activeCount == 2)
        #expect(queue.end(1) == ([1], 3))
        #expect(queue.activeCount == 2)
        #expect(queue.end(2) == ([2], nil))
        #expect(queue.end(3) == ([3], nil))
        #expect(queue.isEmpty)
        #expect(queue.activeCount == 0)
        // An end is counted once.
        #expect(queue.end(3) == ([], nil))
        #expect(queue.activeCount == 0)
    }

    @Test(arguments: [0, -3])
    func `a limit below 1 counts as 1`(limit: Int) {
        var queue = Queue(limit: limit, order: .fifo)
        #expect(queue.add(1, key: nil) == .started(1))
        #expect(queue.add(2, key: nil) == .waiting(2))
    }

    @Test func `equal requests share a download, and those without a key do not`() {
        var queue = Queue(limit: 1, order: .fifo)
        #expect(queue.add(1, key: "a") == .started(1))
        #expect(queue.add(2, key: "a") == .joined(1))
        #expect(queue.add(3, key: nil) == .waiting(2))
        #expect(queue.add(4, key: nil) == .waiting(3))
        #expect(queue.add(5, key: "b") == .waiting(4))
        #expect(queue.add(6, key: "b") == .joined(4))
        #expect(queue.receipts(of: 1) == [1, 2])
        #expect(queue.download(of: 6) == 4)
        #expect(queue.end(1) == ([1, 2], 2))
        #expect(queue.download(of: 1) == nil)
        #expect(queue.add(7, key: "a") == .waiting(5))
    }

    @Test(arguments: [
        (ImageDownloadOrder.fifo, [1, 3, 4, 2, 5, 6, 7]), (.lifo, [1, 4, 3, 6, 5, 2, 7]),
    ])
    func `waiting downloads start by priority and order`(order: ImageDownloadOrder, expected: [Int]) {
        var queue = Queue(limit: 1, order: order)
        let priorities: [RequestPriority] = [.low, .normal, .high, .high, .normal, .normal, .low]
        for (index, priority) in priorities.enumerated() {
            _ = queue.add(index + 1, key: "\(index)", priority: priority)
        }
        #expect([1] + queue.waitingDownloads == expected)
        var started = [1]
        while let next = queue.end(started[started.count - 1]).next { started.append(next) }
        #expect(started == expected)
    }

    @Test func `a change of the order applies to later requests`() {
        var queue = Queue(limit: 1, order: .fifo)
        for receipt in 1...3 { _ = queue.add(receipt, key: nil) }
        queue.order = .lifo
        _ = queue.add(4, key: nil)
        queue.order = .fifo
        _ = queue.add(5, key: nil)
        #expect(queue.waitingDownloads == [4, 2, 3, 5])
    }

    @Test func `a joining request raises the priority of a waiting download`() {
        var queue = Queue(limit: 1, order: .fifo)
        for receipt in 1...4 { _ = queue.add(receipt, key: "\(receipt)") }
        #expect(queue.add(5, key: "4", priority: .high) == .joined(4))
        #expect(queue.add(6, key: "3", priority: .low) == .joined(3))
        #expect(queue.waitingDownloads == [4, 2, 3])
    }

    @Test(arguments: [(ImageDownloadOrder.fifo, [2, 3, 4]), (.lifo, [4, 3, 2])])
    func `a download has no longer the priority of a request that was cancelled`(
        order: ImageDownloadOrder, expected: [Int]
    ) {
        var queue = Queue(limit: 1, order: order)
        for receipt in 1...4 { _ = queue.add(receipt, key: "\(receipt)") }
        _ = queue.add(5, key: "3", priority: .high)
        _ = queue.add(6, key: "3", priority: .low)
        #expect(queue.waitingDownloads.first == 3)
        #expect(queue.cancel(6) == .left(3))
        #expect(queue.waitingDownloads.first == 3)
        #expect(queue.cancel(5) == .left(3))
        #expect(queue.waitingDownloads == expected)
        #expect(queue.add(7, key: "7", priority: .high) == .waiting(5))
        #expect(queue.add(8, key: "8", priority: .low) == .waiting(6))
        #expect(queue.waitingDownloads == [5] + expected + [6])
    }

    @Test func `cancelling a waiting download does not change the number of active ones`() {
        // AFNetworking counted it as ended, and then started more downloads than the maximum (issue 3469).
        var queue = Queue(limit: 1, order: .fifo)
        for receipt in 1...3 { _ = queue.add(receipt, key: "\(receipt)") }
        #expect(queue.cancel(2) == .removed(2))
        #expect(queue.activeCount == 1)
        #expect(queue.waitingDownloads == [3])
        #expect(queue.add(4, key: "4") == .waiting(4))
        #expect(queue.end(1) == ([1], 3))
    }

    @Test func `only the last receipt stops a download`() {
        var queue = Queue(limit: 1, order: .fifo)
        for receipt in 1...3 { _ = queue.add(receipt, key: "a") }
        #expect(queue.cancel(1) == .left(1))
        #expect(queue.cancel(1) == .unknown)
        #expect(queue.cancel(3) == .left(1))
        #expect(queue.receipts(of: 1) == [2])
        #expect(queue.cancel(2) == .stopped(1))
        #expect(queue.cancel(2) == .unknown)
        #expect(queue.cancel(99) == .unknown)
    }

    @Test func `a stopping download keeps its place, and is not joined`() {
        var queue = Queue(limit: 1, order: .fifo)
        _ = queue.add(1, key: "a")
        #expect(queue.cancel(1) == .stopped(1))
        #expect(queue.add(2, key: "a") == .waiting(2))
        #expect(queue.add(3, key: "a") == .joined(2))
        // The end of the first download does not answer the requests that came after it was stopped.
        #expect(queue.end(1) == ([], 2))
        #expect(queue.receipts(of: 2) == [2, 3])
        #expect(queue.end(2) == ([2, 3], nil))
    }

    @Test func `a waiting download that ends gives up its turn`() {
        var queue = Queue(limit: 1, order: .fifo)
        for receipt in 1...3 { _ = queue.add(receipt, key: "\(receipt)") }
        #expect(queue.add(4, key: "2") == .joined(2))
        #expect(queue.end(2) == ([2, 4], nil))
        #expect(queue.activeCount == 1)
        #expect(queue.add(5, key: "2") == .waiting(4))
        #expect(queue.end(1) == ([1], 3))
    }

    @Test func `whatever happens, the limit holds and every receipt ends once`() {
        var random = SplitMix64(seed: 11)
        for limit in [1, 2, 4] {
            var queue = Queue(limit: limit, order: .fifo)
            var active: Set<Int> = []
            var open: Set<Int> = []
            var nextReceipt = 0
            for _ in 0..<5_000 {
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1, 2:
                    nextReceipt += 1
                    open.insert(nextReceipt)
                    let key = Int.random(in: 0..<12, using: &random)
                    queue.order = Bool.random(using: &random) ? .fifo : .lifo
                    let priority: RequestPriority = [.low, .normal, .high].randomElement(using: &random) ?? .normal
                    let admission = queue.add(nextReceipt, key: key == 0 ? nil : "\(key)", priority: priority)
                    if case .started(let number) = admission { #expect(active.insert(number).inserted) }
                case 3:
                    guard let receipt = open.sorted().randomElement(using: &random) else { continue }
                    open.remove(receipt)
                    #expect(queue.cancel(receipt) != .unknown)
                default:
                    guard let number = active.sorted().randomElement(using: &random) else { continue }
                    active.remove(number)
                    let (receipts, next) = queue.end(number)
                    #expect(Set(receipts).isSubset(of: open))
                    open.subtract(receipts)
                    if let next { #expect(active.insert(next).inserted) }
                }
                #expect(queue.activeCount == active.count)
                #expect(active.count <= limit)
                #expect(active.count == limit || queue.waitingDownloads.isEmpty)
            }
            while let number = active.popFirst() {
                let (receipts, next) = queue.end(number)
                open.subtract(receipts)
                if let next { active.insert(next) }
            }
            #expect(open.isEmpty)
            #expect(queue.isEmpty)
        }
    }
}
