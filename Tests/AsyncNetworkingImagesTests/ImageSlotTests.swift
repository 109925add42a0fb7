// SPDX-License-Identifier: MIT

import AsyncNetworking
import AsyncNetworkingImages
import AsyncNetworkingTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(5))) struct ImageSlotTests {
    private let red = try? ImageContent(SamplePicture.png, scale: 2)
    private let placeholder = try? ImageContent(SamplePicture.png, scale: 3)

    private func request(_ name: String) throws -> Request {
        Request(url: try #require(URL(string: "http://localhost/\(name)")))
    }

    /// A downloader with responses that wait for a gate if the path is that of the gate.
    private func downloader(_ gates: [String: ScriptGate] = [:]) -> (ImageDownloader, MockTransport) {
        let transport = MockTransport { request in
            let head = MockResponse.Step.head(.ok, [.contentType: "image/png"])
            let wait = gates[request.url.path].map { [MockResponse.Step.wait($0)] } ?? []
            guard request.url.path != "/missing" else { return .status(.notFound) }
            return MockResponse(wait + [head, .chunk(SamplePicture.png)])
        }
        let session = SessionManager { $0.transport = transport }
        return (ImageDownloader(session: session, cache: AutoPurgingImageCache(memoryPressure: nil)), transport)
    }

    private func name(of phase: ImageSlot.Phase) -> String {
        switch phase {
        case .idle: "idle"
        case .loading: "loading"
        case .loaded: "loaded"
        case .failed: "failed"
        }
    }

    /// Waits until the newest request of a slot has ended.
    private func end(of slot: ImageSlot) async -> ImageSlot.State {
        for await state in slot.states {
            if case .loading = state.phase { continue }
            return state
        }
        return slot.state
    }

    @Test func `a slot shows the placeholder, then the image`() async throws {
        let gate = try ScriptGate()
        let slot = ImageSlot(downloader(["/a": gate]).0)
        #expect(slot.state.image == nil)
        slot.show(try request("a"), placeholder: placeholder)
        #expect(slot.state.image == placeholder)
        #expect(name(of: slot.state.phase) == "loading")
        gate.open()
        let state = await end(of: slot)
        #expect(state.image?.scale == 1)
        #expect(name(of: state.phase) == "loaded")
    }

    @Test func `an image in the memory cache is shown at once`() throws {
        let (images, transport) = downloader()
        let slot = ImageSlot(images)
        images.cache?.add(try #require(red), for: ImageCacheKey(try request("a")))
        slot.show(try request("a"), placeholder: placeholder)
        #expect(slot.state.image == red)
        #expect(name(of: slot.state.phase) == "loaded")
        #expect(transport.requests.isEmpty)
    }

    @Test func `the answer to an older request is ignored`() async throws {
        let gate = try ScriptGate()
        let (images, transport) = downloader(["/old": gate])
        let slot = ImageSlot(images)
        slot.show(try request("old"), placeholder: placeholder)
        try await transport.requests(count: 1)
        // Another slot keeps the transfer of the first request going.
        let other = ImageSlot(images)
        other.show(try request("old"))
        images.cache?.add(try #require(red), for: ImageCacheKey(try request("new")))
        slot.show(try request("new"))
        gate.open()
        #expect(await end(of: other).image?.scale == 1)
        #expect(slot.state.image == red)
    }

    @Test func `the same request is not sent again while it is running`() async throws {
        let gate = try ScriptGate()
        let (images, transport) = downloader(["/a": gate])
        let slot = ImageSlot(images)
        for _ in 0..<3 { slot.show(try request("a")) }
        gate.open()
        #expect(await end(of: slot).image != nil)
        #expect(transport.requests.count == 1)
    }

    @Test func `without a request the slot shows the placeholder or nothing`() async throws {
        let gate = try ScriptGate()
        let slot = ImageSlot(downloader(["/a": gate]).0)
        slot.show(try request("a"))
        slot.show(nil as Request?, placeholder: placeholder)
        #expect(slot.state.image == placeholder)
        slot.show(nil as URL?)
        #expect(slot.state.image == nil)
        #expect(name(of: slot.state.phase) == "idle")
    }

    @Test func `without a placeholder the image before remains until the next one`() async throws {
        let gate = try ScriptGate()
        let (images, _) = downloader(["/b": gate])
        let slot = ImageSlot(images)
        images.cache?.add(try #require(red), for: ImageCacheKey(try request("a")))
        slot.show(try request("a"))
        slot.show(try request("b"))
        #expect(slot.state.image == red)
        slot.cancel()
        #expect(slot.state.image == red)
        #expect(name(of: slot.state.phase) == "idle")
    }

    @Test func `a failure leaves the placeholder`() async throws {
        let slot = ImageSlot(downloader().0)
        slot.show(try request("missing"), placeholder: placeholder)
        let state = await end(of: slot)
        #expect(state.image == placeholder)
        guard case .failed(let error) = state.phase else {
            Issue.record("\(state)")
            return
        }
        #expect((error as? SessionError)?.statusCode == 404)
    }

    @Test func `a released slot cancels its request and ends its states`() async throws {
        let cancelled = AsyncStream.makeStream(of: Void.self)
        let transport = MockTransport { _ in
            defer { if Task.isCancelled { cancelled.continuation.finish() } }
            try? await Task.sleep(for: .seconds(3_600))
            return .status(.ok)
        }
        let images = ImageDownloader(session: SessionManager { $0.transport = transport }, cache: nil)
        var slot: ImageSlot? = ImageSlot(images)
        let states = slot?.states
        slot?.show(try request("a"))
        try await transport.requests(count: 1)
        slot = nil
        for await _ in cancelled.stream {}
        if let states {
            for await _ in states {}
        }
    }
}
