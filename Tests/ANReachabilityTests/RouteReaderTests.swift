// SPDX-License-Identifier: MIT

import ANReachability
import Testing

@Suite struct RouteReaderTests {
    private var kernel = FakeKernel()

    @Test mutating func `the sections are read one after the other`() {
        #expect(kernel.reader.revision == 0)
        let first = kernel.reader.nextRequest()
        #expect(first?.section == .links)
        #expect(kernel.reader.nextRequest() == nil)

        kernel = FakeKernel()
        var sections: [RouteReader.Section] = []
        while let request = kernel.nextRequest(), sections.count < 10 {
            guard sections.last != request.section else { break }
            sections.append(request.section)
            _ = kernel.end(0)
        }
        #expect(sections == [.links, .addresses, .rules, .routes])
        #expect(kernel.reader.revision == 1)
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test mutating func `the state is published when all sections are read`() {
        _ = kernel.nextRequest()
        _ = kernel.answer(MessageType.newLink, [Messages.link(1, "lo", hardware: 772)])
        #expect(kernel.reader.revision == 0)
        #expect(kernel.kind("127.0.0.1") == nil)
        #expect(FakeKernel.usual().kind("127.0.0.1") == .loopback)
        #expect(FakeKernel.usual().kind("198.51.100.1") == .wired)
    }

    @Test mutating func `events during a reading take precedence over its answers`() {
        let route = Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.1")
        _ = kernel.nextRequest()
        _ = kernel.answer(MessageType.newLink, [Messages.link(2, "eth0")])
        // The route is removed after the kernel's answer was made.
        kernel.tell(MessageType.delRoute, route)
        kernel.tell(MessageType.newRoute, Messages.route("198.51.100.0/24", over: 2, via: "192.0.2.1"))
        kernel.answerAll(addresses: [Messages.address(2, "192.0.2.2/24")], routes: [route])
        #expect(kernel.reader.revision == 1)
        #expect(kernel.defaults == [])
        #expect(kernel.kind("198.51.100.9") == .wired)
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test mutating func `lost messages are compensated by a new reading`() {
        kernel = .usual()
        kernel.reader.noteLoss()
        #expect(kernel.nextRequest()?.section == .links)
        // Until then the old state remains valid, and events change it.
        #expect(kernel.defaults == [2])
        kernel.tell(MessageType.newLink, Messages.link(2, "eth0", isRunning: false))
        #expect(kernel.defaults == [])
        kernel.answerAll(links: [Messages.link(3, "eth1")])
        #expect(kernel.kind("127.0.0.1") == nil)
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test mutating func `messages lost during a reading cause another one`() {
        _ = kernel.nextRequest()
        kernel.reader.noteLoss()
        kernel.answerAll()
        #expect(kernel.reader.revision == 1)
        #expect(kernel.nextRequest()?.section == .links)
        kernel.answerAll()
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test mutating func `an interrupted answer is requested again, at most three times`() {
        for reading in 1...3 {
            #expect(kernel.nextRequest()?.section == .links, "reading \(reading)")
            // NLM_F_MULTI and NLM_F_DUMP_INTR.
            _ = kernel.answer(MessageType.newLink, [Messages.link(1, "lo", hardware: 772)], flags: 0x12)
            kernel.answerAll()
        }
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test(arguments: [
        (MessageType.delAddress, Messages.address(2, "192.0.2.2/24")),
        (MessageType.newLink, Messages.link(2, "eth0", isUp: false)),
        (MessageType.delLink, Messages.link(2, "eth0")),
    ])
    mutating func `an event that removes routes implicitly causes a new reading`(type: UInt16, payload: [UInt8]) {
        kernel = .usual()
        #expect(kernel.reader.nextRequest() == nil)
        kernel.tell(type, payload)
        #expect(kernel.defaults == [])
        #expect(kernel.reader.nextRequest()?.section == .links)
    }

    @Test(arguments: [
        (MessageType.delAddress, Messages.address(2, "198.51.100.2/24")),
        (MessageType.newLink, Messages.link(2, "eth0")),
        (MessageType.delLink, Messages.link(7, "gone")),
        // A port is removed from its bridge: AF_BRIDGE, 7.
        (MessageType.delLink, Messages.link(2, "eth0", family: 7)),
        (MessageType.newRoute, Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.1")),
        (MessageType.delRoute, Messages.route("0.0.0.0/0", over: 2, via: "192.0.2.9")),
        (MessageType.delRule, Messages.rule(9, table: 254)),
    ])
    mutating func `redundant events change nothing`(type: UInt16, payload: [UInt8]) {
        kernel = .usual()
        kernel.tell(type, payload)
        #expect(kernel.reader.revision == 1)
        #expect(kernel.defaults == [2])
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test mutating func `answers to other sockets and earlier requests are ignored`() throws {
        let asked = kernel.nextRequest()
        let request = try #require(asked)
        let link = Messages.link(1, "lo", hardware: 772)
        let end = Messages.bytes(Int32(0))
        for (sequence, port) in [(request.sequence &- 1, Messages.port), (request.sequence, 12)] {
            let datagram =
                Messages.message(MessageType.newLink, sequence: sequence, port: port, link)
                + Messages.message(MessageType.done, sequence: sequence, port: port, end)
            #expect(kernel.reader.receive(datagram[...]) == nil)
        }
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test(arguments: [MessageType.error, MessageType.done])
    mutating func `a refused request returns its errno`(type: UInt16) {
        _ = kernel.nextRequest()
        // EPERM.
        #expect(kernel.end(-1, type: type) == 1)
        // MAX_ERRNO, the largest error number of the kernel.
        _ = kernel.nextRequest()
        #expect(kernel.end(-4095, type: type) == 4095)
    }

    @Test(arguments: [MessageType.error, MessageType.done], [1, -4096, .min, .max] as [Int32])
    mutating func `a code that is not a negative errno ends an answer without an error`(type: UInt16, number: Int32) {
        _ = kernel.nextRequest()
        #expect(kernel.end(number, type: type) == nil)
        #expect(kernel.nextRequest()?.section == .addresses)
    }

    @Test(arguments: [RouteReader.Section.links, .addresses, .rules, .routes])
    mutating func `a reading starts again if an answer did not fit into the socket`(
        section: RouteReader.Section
    ) {
        kernel = .usual()
        kernel.reader.noteLoss()
        while let request = kernel.nextRequest(), request.section != section { _ = kernel.end(0) }
        // ENOBUFS.
        #expect(kernel.end(-105, type: MessageType.error) == nil)
        #expect(kernel.defaults == [2])
        #expect(kernel.nextRequest()?.section == .links)
        kernel.answerAll(links: [Messages.link(3, "eth1")])
        #expect(kernel.reader.revision == 2)
        #expect(kernel.reader.nextRequest() == nil)
    }

    @Test mutating func `a kernel without policy routing has the default rules`() {
        _ = kernel.nextRequest()
        _ = kernel.answer(MessageType.newLink, [Messages.link(1, "lo", hardware: 772)])
        _ = kernel.nextRequest()
        _ = kernel.answer(MessageType.newAddress, [])
        #expect(kernel.nextRequest()?.section == .rules)
        // EOPNOTSUPP.
        #expect(kernel.end(-95, type: MessageType.error) == nil)
        #expect(kernel.nextRequest()?.section == .routes)
        _ = kernel.answer(
            MessageType.newRoute, [Messages.route("127.0.0.0/8", over: 1, table: 255, type: 2, scope: 254)])
        #expect(kernel.reader.revision == 1)
        #expect(kernel.kind("127.0.0.1") == .loopback)
    }
}
