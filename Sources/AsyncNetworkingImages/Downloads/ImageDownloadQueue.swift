// SPDX-License-Identifier: MIT

import ANSystem
package import AsyncNetworking

/// The order in which an ``ImageDownloader`` starts waiting downloads of the same priority.
public enum ImageDownloadOrder: Hashable, Sendable {
    /// First in, first out; the default of a downloader.
    case fifo
    /// Last in, first out: the download that was requested last starts first, so that the images now in view precede
    /// those that a user has scrolled past. A request that joins a waiting download moves it only if it raises its
    /// priority.
    case lifo
}

/// The decisions of an image downloader: which requests share a download, and which download starts when.
///
/// A pure value. A download is waiting, active, or stopping: stopping downloads have no receipts left, and occupy a
/// place until their transfer has ended.
package struct ImageDownloadQueue<Key: Hashable & Sendable>: Sendable {
    /// The order in which downloads that are added later are started.
    package var order: ImageDownloadOrder
    private let limit: Int
    private var downloads: [Int: Download] = [:]
    /// The downloads that requests can join.
    private var joinable: [Key: Int] = [:]
    private var receipts: [Int: Int] = [:]
    /// The waiting downloads.
    private var waiting = RankedQueue<Int, Place>()
    private var lastNumber = 0
    private var lastArrival = 0
    /// The number of downloads that occupy a place.
    package private(set) var activeCount = 0

    private struct Download: Sendable {
        let key: Key?
        let arrival: Int
        var isActive = false
        /// The requests by receipt: when each was added, and its priority.
        private var requests: [Int: (number: Int, priority: RequestPriority)] = [:]
        /// The number of requests of each priority that any has.
        private var counts: [RequestPriority: Int] = [:]
        private var lastNumber = 0

        init(_ key: Key?, arrival: Int) {
            (self.key, self.arrival) = (key, arrival)
        }

        /// The receipts in the order in which they were added.
        var receipts: [Int] { requests.sorted { $0.value.number < $1.value.number }.map(\.key) }
        /// The highest priority of the requests; `nil` if there are none.
        var priority: RequestPriority? { counts.keys.max() }

        mutating func add(_ receipt: Int, _ priority: RequestPriority) {
            lastNumber += 1
            requests[receipt] = (lastNumber, priority)
            counts[priority, default: 0] += 1
        }

        mutating func remove(_ receipt: Int) {
            guard let (_, priority) = requests.removeValue(forKey: receipt), let count = counts[priority] else {
                return
            }
            counts[priority] = count > 1 ? count - 1 : nil
        }
    }

    /// The place of a waiting download: by priority, then by its arrival or, in the other order, against it.
    private struct Place: Comparable, Sendable {
        let priority: RequestPriority
        let order: Int

        static func < (left: Place, right: Place) -> Bool {
            (right.priority, left.order) < (left.priority, right.order)
        }
    }

    /// The result of adding a request.
    package enum Admission: Hashable, Sendable {
        /// The request shares a download that was added before.
        case joined(Int)
        /// A new download must be started.
        case started(Int)
        /// A new download waits.
        case waiting(Int)

        /// The number of the download.
        package var download: Int {
            switch self {
            case .joined(let download), .started(let download), .waiting(let download): download
            }
        }
    }

    /// The result of cancelling a receipt.
    package enum Cancellation: Hashable, Sendable {
        /// There is no such receipt, or its download has ended.
        case unknown
        /// Others share the download, which continues.
        case left(Int)
        /// The download, which was waiting, is removed.
        case removed(Int)
        /// The transfer of the download must be stopped. The download ends with its transfer.
        case stopped(Int)
    }

    /// Creates an empty queue.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of active downloads; a value below 1 counts as 1.
    ///   - order: The order in which waiting downloads are started.
    package init(limit: Int, order: ImageDownloadOrder) {
        self.limit = max(limit, 1)
        self.order = order
    }

    /// Whether there are no downloads.
    package var isEmpty: Bool { downloads.isEmpty }

    /// The numbers of the waiting downloads, next one first.
    package var waitingDownloads: [Int] { waiting.elements }

    /// Adds a request.
    ///
    /// - Parameters:
    ///   - receipt: A number that identifies the request.
    ///   - key: The key of requests that may share a download; `nil` if this one may not.
    ///   - priority: The priority of the request. A download has the highest one of its requests.
    package mutating func add(_ receipt: Int, key: Key?, priority: RequestPriority = .normal) -> Admission {
        if let key, let number = joinable[key], let priorityBefore = downloads[number]?.priority {
            downloads[number]?.add(receipt, priority)
            receipts[receipt] = number
            if priority > priorityBefore, waiting.contains(number) { wait(number, priority, nextArrival()) }
            return .joined(number)
        }
        lastNumber += 1
        let arrival = nextArrival()
        downloads[lastNumber] = Download(key, arrival: arrival)
        downloads[lastNumber]?.add(receipt, priority)
        receipts[receipt] = lastNumber
        if let key { joinable[key] = lastNumber }
        wait(lastNumber, priority, arrival)
        return start() == lastNumber ? .started(lastNumber) : .waiting(lastNumber)
    }

    /// Cancels a receipt. Only that of its download's last request stops the download. A waiting download that loses its
    /// highest priority takes its place among those of the lower one, in the order of their first requests.
    package mutating func cancel(_ receipt: Int) -> Cancellation {
        guard let number = receipts.removeValue(forKey: receipt), let priorityBefore = downloads[number]?.priority
        else {
            return .unknown
        }
        downloads[number]?.remove(receipt)
        if let priority = downloads[number]?.priority {
            if priority < priorityBefore, waiting.contains(number), let arrival = downloads[number]?.arrival {
                wait(number, priority, arrival)
            }
            return .left(number)
        }
        forget(downloads[number]?.key, number)
        guard downloads[number]?.isActive == false else { return .stopped(number) }
        downloads[number] = nil
        waiting.remove(number)
        return .removed(number)
    }

    /// Ends a download, which may still be waiting.
    ///
    /// - Returns: The receipts of its requests in the order in which they were added, and the download to start next.
    package mutating func end(_ number: Int) -> (receipts: [Int], next: Int?) {
        guard let download = downloads.removeValue(forKey: number) else { return ([], nil) }
        forget(download.key, number)
        for receipt in download.receipts { receipts[receipt] = nil }
        if download.isActive { activeCount -= 1 } else { waiting.remove(number) }
        return (download.receipts, start())
    }

    /// Returns the receipts of a download.
    package func receipts(of number: Int) -> [Int] { downloads[number]?.receipts ?? [] }

    /// Returns the download of a receipt; `nil` if it was cancelled or has ended.
    package func download(of receipt: Int) -> Int? { receipts[receipt] }

    private mutating func forget(_ key: Key?, _ number: Int) {
        // A later request with the same key may have its own download by now.
        if let key, joinable[key] == number { joinable[key] = nil }
    }

    private mutating func nextArrival() -> Int {
        lastArrival += 1
        return lastArrival
    }

    /// Lets a download wait at a place.
    private mutating func wait(_ number: Int, _ priority: RequestPriority, _ arrival: Int) {
        waiting.insert(number, at: Place(priority: priority, order: order == .fifo ? arrival : -arrival))
    }

    /// Starts the next download if there is a place for it, and returns it.
    private mutating func start() -> Int? {
        guard activeCount < limit, let number = waiting.popFirst() else { return nil }
        activeCount += 1
        downloads[number]?.isActive = true
        return number
    }
}
