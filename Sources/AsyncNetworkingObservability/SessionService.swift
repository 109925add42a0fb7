// SPDX-License-Identifier: MIT

#if Observability
    public import AsyncNetworking
    public import ServiceLifecycle

    /// A session as a service, which ends with its group.
    private struct SessionService: Service {
        let manager: SessionManager
        let limit: Duration?

        func run() async throws {
            do {
                try await gracefulShutdown()
                await manager.shutdown(draining: limit)
            } catch {
                // The group was cancelled, and does not wait.
                await manager.shutdown(draining: .zero)
            }
        }
    }

    extension SessionManager {
        /// The session as a service of a `ServiceGroup`: a graceful shutdown of the group rejects new requests, and waits
        /// for those that are running.
        ///
        /// Add it before the services that use the session: a group shuts its services down in the reverse order. If the
        /// group is cancelled, the running requests are cancelled at once.
        ///
        /// - Parameter limit: The time after which requests that are still running are cancelled; `nil` waits without a
        ///   limit, and 30 s by default. See ``AsyncNetworking/SessionManager/shutdown(draining:)``.
        public nonisolated func service(draining limit: Duration? = .seconds(30)) -> any Service {
            SessionService(manager: self, limit: limit)
        }
    }
#endif
