// SPDX-License-Identifier: MIT

extension NSNotification.Name {
    /// Posted on the main queue when a suspended task of a manager has been resumed, also for the first time. The
    /// object is the task; there is no user info.
    public static let AFNetworkingTaskDidResume = NSNotification.Name("com.alamofire.networking.task.resume")
    /// Posted on the main queue when a running task of a manager has been suspended. The object is the task; there is
    /// no user info.
    public static let AFNetworkingTaskDidSuspend = NSNotification.Name("com.alamofire.networking.task.suspend")
    /// Posted on the main queue when a task of a manager has ended and its completion handler, if any, has returned.
    /// The object is the task. The keys of the user info are the constants `AFNetworkingTaskDidComplete…`.
    public static let AFNetworkingTaskDidComplete = NSNotification.Name("com.alamofire.networking.task.complete")
    /// Posted on the manager's own serial queue when
    /// ``AFURLSessionManager/invalidateSessionCancelingTasks(_:resetSession:)`` was called and the last task of the
    /// session has ended, but not when a manager is freed. The object is the `URLSession`.
    public static let AFURLSessionDidInvalidate = NSNotification.Name("com.alamofire.networking.session.invalidate")
    /// Posted on the manager's own serial queue when a download has been moved to its destination, before the
    /// completion handler is called. The object is the task; there is no user info.
    public static let AFURLSessionDownloadTaskDidMoveFileSuccessfully = NSNotification.Name(
        "com.alamofire.networking.session.download.file-manager-succeed")
    /// Posted on the manager's own serial queue when a download could not be moved to its destination, for example
    /// because a file exists there. The object is the task, the user info that of the error. The download is removed.
    /// The completion handler is called with the destination nevertheless, and does not receive this error.
    public static let AFURLSessionDownloadTaskDidFailToMoveFile = NSNotification.Name(
        "com.alamofire.networking.session.download.file-manager-error")
}

/// The user info key for the response body, a `Data`, in `AFNetworkingTaskDidComplete`: after a failure the part that
/// was received; empty for a download. Absent for a complete download with a destination, even if it could not be moved
/// there.
public let AFNetworkingTaskDidCompleteResponseDataKey = "com.alamofire.networking.complete.finish.responsedata"

/// The user info key for the object that the response serializer returned, or for the destination of a download, a
/// `URL`, in `AFNetworkingTaskDidComplete`. Absent if there is no object.
public let AFNetworkingTaskDidCompleteSerializedResponseKey =
    "com.alamofire.networking.task.complete.serializedresponse"

/// The user info key for the response serializer, an ``AFURLResponseSerialization``, in `AFNetworkingTaskDidComplete`.
/// Always present.
public let AFNetworkingTaskDidCompleteResponseSerializerKey =
    "com.alamofire.networking.task.complete.responseserializer"

/// The user info key for the destination of a download, a `URL`, in `AFNetworkingTaskDidComplete`, even if the file
/// could not be moved there. Absent for other tasks, for a download without a destination, and if the transfer failed.
public let AFNetworkingTaskDidCompleteAssetPathKey = "com.alamofire.networking.task.complete.assetpath"

/// The user info key for the error of the transfer or the serializer, an `NSError`, in `AFNetworkingTaskDidComplete`:
/// the error that the completion handler received. Absent after success.
public let AFNetworkingTaskDidCompleteErrorKey = "com.alamofire.networking.task.complete.error"

/// The user info key for the metrics, an ``AFURLSessionTaskMetrics``, in `AFNetworkingTaskDidComplete`. Absent if the
/// `transfer` of the task is `nil`, for example because its request could not be created.
public let AFNetworkingTaskDidCompleteSessionTaskMetrics = "com.alamofire.networking.complete.sessiontaskmetrics"
