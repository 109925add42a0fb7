// SPDX-License-Identifier: MIT

import CLinux
import Glibc

/// Keeps a ``NetworkState`` true by reading it whole, part after part, and by the events in between; pure.
///
/// The kernel answers one request at a time, and what it reads may change meanwhile. So each event that arrives during a
/// reading is kept, and repeated on what was read: an event is never older than an answer that comes after it says.
///
/// The state is read again after messages were lost, after an answer that says of itself that it is inconsistent, and after
/// an event that says less than it does.
package struct RouteReader: Sendable {
    /// What the network is like, as far as it is known.
    package private(set) var state: NetworkState
    /// Grows with each change of ``state``; 0 until it was read for the first time.
    package private(set) var revision = 0

    /// This side's port: answers are sent to it.
    private let port: UInt32
    private let empty: NetworkState
    /// What is being read.
    private var section: Section?
    /// What was read so far.
    private var draft: NetworkState
    /// What happened since the reading began.
    private var journal: [RouteEvent] = []
    private var sequence: UInt32 = 0
    /// Whether the section is read, or the reading was not begun, so that there is something to ask for.
    private var isWaiting = true
    private var mustReadAgain = false
    private var isInconsistent = false
    /// How many readings in a row were inconsistent.
    private var inconsistentReadings = 0

    private static let mostInconsistentReadings = 3

    /// The parts of the state, in the order in which they are read.
    package enum Section: CaseIterable, Sendable {
        case links
        case addresses
        case rules
        case routes
    }

    /// A question to the kernel.
    package struct Request: Hashable, Sendable {
        package let section: Section
        package let sequence: UInt32
    }

    /// Begins with nothing known.
    package init(port: UInt32, deviceType: @escaping @Sendable (String) -> String?) {
        self.port = port
        empty = NetworkState(deviceType: deviceType)
        state = empty
        draft = empty
    }

    /// The next question, when there is one; it counts as asked.
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

    /// Notes that messages were lost.
    package mutating func noteLoss() {
        mustReadAgain = true
    }

    /// Takes the messages of a datagram.
    ///
    /// - Returns: The `errno` with which the kernel refused to answer; nil when it did not.
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
                // What has happened since the question fills the socket, so that there is no room for the answer.
                case ENOBUFS: beginAgain()
                // A kernel without policy routing has no rules to tell.
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
        // Before the first reading the state is not shown, and the journal has the event.
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
