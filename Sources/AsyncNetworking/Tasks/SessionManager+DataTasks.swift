// SPDX-License-Identifier: MIT

public import ANHTTP
public import ANSerialization
import FoundationEssentials

// Tasks that collect the response's body in memory.

extension SessionManager {
    /// Creates a suspended task that performs a request and collects the response's body in memory, regardless of its
    /// status.
    ///
    /// The task starts when it is resumed. If the manager was invalidated or shut down, the task fails with
    /// ``SessionError/invalidated``. Releasing a task that was never resumed cancels it.
    ///
    /// - Parameter request: The request to send. A response body above its ``ANHTTP/TransferOptions/maximumBodySize``,
    ///   128 MiB by default, fails the task with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``.
    public nonisolated func makeDataTask(for request: Request) -> DataTask {
        makeTask(.data, .success(request)) { try await self.collect($0) }
    }

    /// Creates a suspended task that performs a request and deserializes the response.
    ///
    /// The task starts when it is resumed. If the manager was invalidated or shut down, the task fails with
    /// ``SessionError/invalidated``. Releasing a task that was never resumed cancels it.
    ///
    /// - Parameters:
    ///   - request: The request to send. A response body above its ``ANHTTP/TransferOptions/maximumBodySize``, 128 MiB
    ///     by default, fails the task with ``ANHTTP/TransportError/Reason/responseTooLarge(_:)``.
    ///   - serializer: The serializer that validates the response and converts its body. If it does not accept the
    ///     response, the task fails with ``ANSerialization/SerializationError/rejected(_:)``, in a ``SessionError``; if
    ///     it cannot convert the body, with its error, wrapped in a ``SessionError`` if it is a
    ///     ``ANSerialization/SerializationError``.
    public nonisolated func makeDataTask<Serializer: ResponseSerializer>(
        for request: Request, as serializer: Serializer
    ) -> TransferTask<Response<Serializer.Output>> {
        makeTask(.data, .success(request)) { task in
            try await self.collect(task).serialized(by: serializer)
        }
    }

    /// Performs a task's request and collects the body; waits whenever the task is suspended.
    nonisolated func collect(_ task: RunningTask) async throws -> Response<Data> {
        let core = task.core
        let limit = task.request.maximumBodySize(inheritingFrom: pipeline.template)
        return try await perform(
            task.erased, task.gatedRequest(), delivery: .streamed, reporting: core
        ) { head, body in
            core.receive(head)
            core.accept()
            var data = Data()
            for try await chunk in body {
                try data.collect(chunk, upTo: limit)
                try await core.waitUntilRunning()
            }
            let ending = body.ending ?? ResponseEnding()
            core.complete(Int64(data.count), ending.metrics)
            return Response(data, head: head, ending: ending)
        }
    }
}
