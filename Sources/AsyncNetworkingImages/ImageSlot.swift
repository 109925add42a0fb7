// SPDX-License-Identifier: MIT

import ANSystem
public import AsyncNetworking
public import FoundationEssentials

/// A place for one image, such as a view: it follows the newest request and ignores the answers to older ones.
///
/// ```swift
/// let avatar = ImageSlot(images)
/// avatar.show(user.avatar, placeholder: silhouette)
/// for await state in avatar.states { view.draw(state.image) }
/// ```
///
/// All members may be used from any thread or task at any time, and return immediately. Releasing the slot cancels its
/// request.
public final class ImageSlot: Sendable {
    private let downloader: ImageDownloader
    private let machine = Lock(ImageSlotStateMachine())
    private let broadcast = Broadcast<State>()

    /// The image that a slot shows, and the state of its newest request.
    public struct State: Sendable {
        /// The image to show: the one requested, a placeholder, or the one shown before; `nil`, the default, for none.
        public var image: ImageContent?
        /// The state of the newest request; ``ImageSlot/Phase/idle`` by default.
        public var phase = Phase.idle
    }

    /// The state of a slot's newest request: none, loading, or its result.
    public enum Phase: Sendable {
        /// There is no request: none was made, `nil` was shown last, or ``ImageSlot/cancel()`` ended it while it ran.
        case idle
        /// The image is being downloaded, or its download waits; meanwhile the placeholder or the former image is
        /// shown.
        case loading
        /// The image was received, or found in the memory cache, and is the one shown.
        case loaded
        /// The image could not be downloaded: the error is a `SessionError`, an ``ImageError``, that of a custom
        /// decoder or of the program's other code, such as interceptors, or `CancellationError` if the session
        /// cancelled its requests. The slot continues to show the placeholder or the former image.
        case failed(any Error)
    }

    /// Creates an empty slot: it shows no image, and its phase is ``Phase/idle``.
    ///
    /// - Parameter downloader: The downloader for the images, which several slots may share.
    public init(_ downloader: ImageDownloader) {
        self.downloader = downloader
        broadcast.send(State())
    }

    deinit {
        machine.withLock { $0.cancel() }?.cancel()
        broadcast.finish()
    }

    /// The current state: the image to show, and the state of the newest request.
    public var state: State { machine.withLock { $0.state } }

    /// A stream of ``state`` for any number of readers: the latest value first, then newer ones until the slot is
    /// released. A slow reader skips states, but never the last.
    public var states: BroadcastStream<State> { broadcast.stream }

    // MARK: Requests

    /// Shows the image at a URL: at once if it is in the memory cache, and otherwise when it was downloaded.
    ///
    /// The memory cache is not used if the session's cache policy is `reload` or `revalidate`.
    ///
    /// If this slot is downloading an image with the same URL and header fields already, that request continues, and
    /// the placeholder is ignored. A request of this slot for another image is cancelled. An image that is shown
    /// already, or failed, is requested again. The priority of the request is normal.
    ///
    /// - Parameters:
    ///   - url: The URL of the image, requested with `Accept: image/*`; `nil` cancels the request, and shows the
    ///     placeholder or nothing.
    ///   - placeholder: The image to show meanwhile; `nil`, the default, leaves what is shown, or shows nothing if
    ///     `url` is `nil`. It is ignored if the image is shown at once.
    public func show(_ url: URL?, placeholder: ImageContent? = nil) {
        show(url.map { Request(url: $0, headers: [.accept: "image/*"]) }, placeholder: placeholder)
    }

    /// Shows the image for a request: at once if ``ImageDownloader/cachedImage(for:)`` has it, and otherwise when it
    /// was downloaded.
    ///
    /// If this slot is downloading an image with the same URL and header fields already, that request continues, and
    /// the placeholder is ignored. A request of this slot for another image is cancelled. An image that is shown
    /// already, or failed, is requested again. The priority of the request is normal.
    ///
    /// - Parameters:
    ///   - request: The request for the image, to which no `Accept` field is added; `nil` cancels the request, and
    ///     shows the placeholder or nothing.
    ///   - placeholder: The image to show meanwhile; `nil`, the default, leaves what is shown, or shows nothing if
    ///     `request` is `nil`. It is ignored if the image is shown at once.
    public func show(_ request: Request?, placeholder: ImageContent? = nil) {
        guard let request else { return change { $0.clear(placeholder) } }
        let cached = downloader.cachedImage(for: request)
        let (old, token) = machine.withLock { machine in
            let result = machine.show(request, cached: cached, placeholder: placeholder)
            broadcast.send(machine.state)
            return result
        }
        old?.cancel()
        guard let token else { return }
        let download = downloader.download(request)
        guard machine.withLock({ $0.begin(download, token) }) else { return download.cancel() }
        // Ends with the download, which the slot cancels when it is released.
        Task { [weak self] in
            let result: Result<ImageContent, any Error>
            do {
                result = .success(try await download.image)
            } catch {
                result = .failure(error)
            }
            self?.end(token, result)
        }
    }

    /// Cancels the request and leaves what is shown; the phase becomes ``Phase/idle`` if the image was loading, and
    /// otherwise stays. A download that other requests share continues.
    public func cancel() {
        change { $0.cancel() }
    }

    private func change(_ change: (inout ImageSlotStateMachine) -> ImageDownload?) {
        let old = machine.withLock { machine in
            let old = change(&machine)
            broadcast.send(machine.state)
            return old
        }
        old?.cancel()
    }

    private func end(_ token: Int, _ result: Result<ImageContent, any Error>) {
        machine.withLock { machine in
            if machine.end(token, result) { broadcast.send(machine.state) }
        }
    }
}

/// The decisions of an ``ImageSlot``. A pure value; tokens identify requests.
struct ImageSlotStateMachine: Sendable {
    /// The visible state of the slot.
    private(set) var state = ImageSlot.State()
    private var token = 0
    private var current: ImageCacheKey?
    private var download: ImageDownload?

    /// Begins a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - cached: The image, if it is in the memory cache.
    ///   - placeholder: The image to show meanwhile; `nil` for what is shown.
    /// - Returns: The download to cancel, and the token of the download to start, or `nil` for either.
    mutating func show(
        _ request: Request, cached: ImageContent?, placeholder: ImageContent?
    ) -> (old: ImageDownload?, token: Int?) {
        let key = ImageCacheKey(request)
        if case .loading = state.phase, current == key, cached == nil { return (nil, nil) }
        let old = cancel()
        if let cached {
            state = ImageSlot.State(image: cached, phase: .loaded)
            return (old, nil)
        }
        state = ImageSlot.State(image: placeholder ?? state.image, phase: .loading)
        current = key
        return (old, token)
    }

    /// Stores the download of a request. Returns whether the request is still the newest one.
    mutating func begin(_ download: ImageDownload, _ token: Int) -> Bool {
        guard token == self.token else { return false }
        self.download = download
        return true
    }

    /// Ends a request. Returns whether it was the newest one, so that the state has changed.
    mutating func end(_ token: Int, _ result: Result<ImageContent, any Error>) -> Bool {
        guard token == self.token else { return false }
        _ = cancel()
        switch result {
        case .success(let image): state = ImageSlot.State(image: image, phase: .loaded)
        case .failure(let error): state.phase = .failed(error)
        }
        return true
    }

    /// Removes the request and shows an image instead, or nothing. Returns the download to cancel.
    mutating func clear(_ placeholder: ImageContent?) -> ImageDownload? {
        defer { state = ImageSlot.State(image: placeholder) }
        return cancel()
    }

    /// Removes the request, and returns the download to cancel. The answers to earlier requests are ignored from now
    /// on.
    mutating func cancel() -> ImageDownload? {
        defer { (current, download) = (nil, nil) }
        token += 1
        if case .loading = state.phase { state.phase = .idle }
        return download
    }
}
