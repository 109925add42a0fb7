// SPDX-License-Identifier: MIT

extension NSNotification.Name {
    /// A task was resumed; posted on the main queue, with the task as its object.
    public static let AFNetworkingTaskDidResume = NSNotification.Name("com.alamofire.networking.task.resume")
    /// A task was suspended; posted on the main queue, with the task as its object.
    public static let AFNetworkingTaskDidSuspend = NSNotification.Name("com.alamofire.networking.task.suspend")
    /// A task is over and its completion handler has returned; posted on the main queue, with the task as its object. The
    /// user info has what the keys `AFNetworkingTaskDidComplete…` say.
    public static let AFNetworkingTaskDidComplete = NSNotification.Name("com.alamofire.networking.task.complete")
    /// A manager was invalidated and its last task is over; posted on its queue, with its session as the object.
    public static let AFURLSessionDidInvalidate = NSNotification.Name("com.alamofire.networking.session.invalidate")
    /// A download was moved to its place; posted on the manager's queue, with the task as its object.
    public static let AFURLSessionDownloadTaskDidMoveFileSuccessfully = NSNotification.Name(
        "com.alamofire.networking.session.download.file-manager-succeed")
    /// A download could not be moved to its place; posted on the manager's queue, with the task as its object and the user
    /// info of the error.
    public static let AFURLSessionDownloadTaskDidFailToMoveFile = NSNotification.Name(
        "com.alamofire.networking.session.download.file-manager-error")
}

/// The key of the body, a `Data`; not there for a download that has a place.
public let AFNetworkingTaskDidCompleteResponseDataKey = "com.alamofire.networking.complete.finish.responsedata"

/// The key of what the serializer made.
public let AFNetworkingTaskDidCompleteSerializedResponseKey =
    "com.alamofire.networking.task.complete.serializedresponse"

/// The key of the serializer.
public let AFNetworkingTaskDidCompleteResponseSerializerKey =
    "com.alamofire.networking.task.complete.responseserializer"

/// The key of a download's place, a `URL`.
public let AFNetworkingTaskDidCompleteAssetPathKey = "com.alamofire.networking.task.complete.assetpath"

/// The key of the error of the transfer or of the serializer.
public let AFNetworkingTaskDidCompleteErrorKey = "com.alamofire.networking.task.complete.error"

/// The key of what the transfer cost, an ``AFURLSessionTaskMetrics``.
public let AFNetworkingTaskDidCompleteSessionTaskMetrics = "com.alamofire.networking.complete.sessiontaskmetrics"
