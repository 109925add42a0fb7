// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// A state machine that keeps a ``NetworkState`` up to date, from complete readings and the events between them; pure.
///
/// A reading consists of one request for each section, and the network may change in between. Events that arrive during
/// a reading are therefore recorded and applied again to its result: an event is never older than the state described
/// by an answer that arrives after it.
///
/// The state is read again after messages were lost, after an answer that the kernel marked as inconsistent, and after
/// an event that described less than the whole change.
package struct RouteReader: Sendable {
    /// The latest known state of the network.
    package private(set) var state: NetworkState
    /// The number of changes of ``state``; 0 until the first reading is complete.
    package private(set) var revision = 0

    /// The port of the requesting socket, by which answers are recognized.
    private let port: UInt32
    private let empty: NetworkState
    /// The section being read; `nil` between readings.
    private var section: Section?
    /// The state read so far.
    private var draft: NetworkState
    /// The events since the reading began.
    private var journal: [RouteEvent] = []
    private var sequence: UInt32 = 0
    /// Whether a request must be sent: the current section's has not been sent yet.
    private var isWaiting = true
    private var mustReadAgain = false
    private var isInconsistent = false
    /// The number of consecutive readings that were inconsistent.
    private var inconsistentReadings = 0

    private static let mostInconsistentReadings = 3

    /// The sections of the state, in the order in which they are read.
    package enum Section: CaseIterable, Sendable {
        case links
        case addresses
        case rules
        case routes
    }

    /// A request for all entries of a section.
    package struct Request: Hashable, Sendable {
        package let section: Section
        package let sequence: UInt32
    }

    /// Creates a reader with an empty state.
    ///
    /// - Parameters:
    ///   - port: The port of the requesting socket.
    ///   - deviceType: Returns the `DEVTYPE` of an interface by name.
    package init(port: UInt32, deviceType: @escaping @Sendable (String) -> String?) {
        self.port = port
        empty = NetworkState(deviceType: deviceType)
        state = empty
        draft = empty
    }

    /// Returns the next request and marks it as sent; `nil` if there is nothing to request.
    package mutating func nextRequest() -> Request? {
        if section == nil, revision == 0 || mustReadAgain {
            section = Section.allCases.first
            draft = empty
            journal = []
            mustReadAgain = false
            isInconsistent = false
            isWaiting = true
        }
        guard let section, isWaiting else { return nil }
        isWaiting = false
        sequence &+= 1
        return Request(section: section, sequence: sequence)
    }

    /// Records that messages were lost.
    package mutating func noteLoss() {
        mustReadAgain = true
    }

    /// Processes the messages of a datagram.
    ///
    /// - Returns: The `errno` with which the kernel refused a request; `nil` if it did not.
    package mutating func receive(_ datagram: ArraySlice<UInt8>) -> Int32? {
        for message in NetlinkMessages(datagram) {
            guard message.port == port, message.sequence == sequence, section != nil, !isWaiting else {
                if message.port != port, let event = RouteEvent(message) { note(event) }
                continue
            }
            if message.wasInterrupted { isInconsistent = true }
            if let code = message.endCode {
                switch code {
                case 0: finishSection()
                // Events since the request have filled the socket's buffer, so that the answer did not fit.
                case ENOBUFS: beginAgain()
                // A kernel without policy routing has no rules.
                case _ where section == .rules: finishSection()
                default: return code
                }
            } else if let event = RouteEvent(message) {
                _ = draft.apply(event)
            }
        }
        return nil
    }

    private mutating func beginAgain() {
        section = nil
        mustReadAgain = true
    }

    private mutating func note(_ event: RouteEvent) {
        if section != nil { journal.append(event) }
        // Before the first reading the state is not visible, and the journal has the event.
        guard revision > 0 else { return }
        switch state.apply(event) {
        case .nothing: break
        case .changed: revision += 1
        case .changedMoreThanSaid:
            revision += 1
            mustReadAgain = true
        }
    }

    private mutating func finishSection() {
        isWaiting = true
        section = section.flatMap { section in Section.allCases.drop { $0 != section }.dropFirst().first }
        guard section == nil else { return }
        for event in journal where draft.apply(event) == .changedMoreThanSaid { mustReadAgain = true }
        state = draft
        draft = empty
        journal = []
        revision += 1
        inconsistentReadings = isInconsistent ? inconsistentReadings + 1 : 0
        if isInconsistent, inconsistentReadings < Self.mostInconsistentReadings { mustReadAgain = true }
    }
}
