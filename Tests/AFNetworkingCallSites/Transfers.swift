// SPDX-License-Identifier: MIT

import AFNetworking

private func parts(_ json: Any?) -> String {
    let body = (json as? [String: Any])?["body"] as? String ?? ""
    return body.components(separatedBy: "\r\n").filter { $0.hasPrefix("Content-Disposition") }
        .map { $0.replacingOccurrences(of: "Content-Disposition: form-data; ", with: "") }.joined(separator: " | ")
}

private func temporaryFile(_ text: String, _ name: String = "upload.txt") -> URL {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try! FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let url = directory.appendingPathComponent(name)
    try! text.data(using: .utf8)!.write(to: url)
    return url
}

/// Removes a temporary file with its directory.
private func remove(_ file: URL) {
    try! FileManager.default.removeItem(at: file.deletingLastPathComponent())
}

extension CallSite {
    static let uploads = [
        CallSite("a form with a file in memory", #"name="user" | name="avatar"; filename="a.png""#) { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: ["user": "ada"], headers: nil,
                constructingBodyWith: { (formData) in
                    formData.appendPart(
                        withFileData: "png".data(using: .utf8)!, name: "avatar", fileName: "a.png", mimeType: "image/png")
                }, progress: { (progress) in _ = progress.fractionCompleted },
                success: { (_, json) in report(parts(json)) }, failure: { (_, error) in report("\(error)") })
        },
        CallSite("a form with a file on disk", #"name="doc"; filename="upload.txt""#) { server, report in
            let file = temporaryFile("content")
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: nil, headers: nil,
                constructingBodyWith: { (formData: AFMultipartFormData!) -> Void in
                    try! formData.appendPart(withFileURL: file, name: "doc")
                }, progress: nil,
                success: { _, json in
                    remove(file)
                    report(parts(json))
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("a form with a named file", #"name="doc"; filename="b.csv""#) { server, report in
            let file = temporaryFile("a;b")
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: nil, headers: nil,
                constructingBodyWith: { formData in
                    do {
                        try formData.appendPart(
                            withFileURL: file, name: "doc", fileName: "b.csv", mimeType: "text/csv")
                    } catch {
                        report("\(error)")
                    }
                }, progress: nil,
                success: { _, json in
                    remove(file)
                    report(parts(json))
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("a form with a stream", #"name="s"; filename="s.bin""#) { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: nil, headers: nil,
                constructingBodyWith: { formData in
                    formData.appendPart(
                        with: InputStream(data: Data("12345".utf8)), name: "s", fileName: "s.bin", length: 5,
                        mimeType: "application/octet-stream")
                }, progress: nil, success: { _, json in report(parts(json)) }, failure: { _, e in report("\(e)") })
        },
        CallSite("a part with custom headers", "true") { server, report in
            AFHTTPSessionManager(baseURL: URL(string: server)).post(
                "post", parameters: nil, headers: nil,
                constructingBodyWith: { formData in
                    formData.appendPart(withHeaders: ["X-Part": "1"], body: Data("x".utf8))
                    formData.throttleBandwidth(withPacketSize: kAFUploadStream3GSuggestedPacketSize, delay: 0)
                }, progress: nil,
                success: { _, json in
                    report("\(((json as? [String: Any])?["body"] as? String ?? "").contains("X-Part: 1"))")
                }, failure: { _, e in report("\(e)") })
        },
        CallSite("a streamed upload task", #"PUT name="k""#) { server, report in
            let request = AFHTTPRequestSerializer().multipartFormRequest(
                withMethod: "PUT", urlString: server + "put", parameters: ["k": "v"], constructingBodyWith: { _ in },
                error: nil)
            let manager = AFURLSessionManager(sessionConfiguration: URLSessionConfiguration.default)
            var uploadTask: URLSessionUploadTask?
            uploadTask = manager.uploadTask(
                withStreamedRequest: request as URLRequest, progress: { (uploadProgress) in },
                completionHandler: { (response, responseObject, error) in
                    report("\((responseObject as? [String: Any])?["method"] ?? "") \(parts(responseObject))")
                    _ = uploadTask
                })
            uploadTask?.resume()
        },
        CallSite("a multipart request, with try", "-1000") { server, report in
            do {
                _ = try AFHTTPRequestSerializer().multipartFormRequest(
                    withMethod: "POST", urlString: server + "post", parameters: [:],
                    constructingBodyWith: { formData in
                        do {
                            try formData.appendPart(withFileURL: URL(fileURLWithPath: "/does/not/exist"), name: "x")
                        } catch {
                            report("\((error as NSError).code)")
                        }
                    })
            } catch {
                report("\(error)")
            }
        },
        CallSite("an upload from memory", "POST /post bytes") { server, report in
            var request = URLRequest(url: URL(string: server + "post")!)
            request.httpMethod = "POST"
            AFURLSessionManager().uploadTask(with: request, from: Data("bytes".utf8), progress: nil) { _, object, _ in
                report(line(object))
            }.resume()
        },
        CallSite("an upload from a file", "POST /post content 7") { server, report in
            var request = URLRequest(url: URL(string: server + "post")!)
            request.httpMethod = "POST"
            let manager = AFURLSessionManager(sessionConfiguration: .default)
            let file = temporaryFile("content")
            let task = manager.uploadTask(
                with: request, fromFile: file, progress: { print($0.fractionCompleted, terminator: "") },
                completionHandler: { response, object, error in
                    remove(file)
                    report("\(line(object)) \(field("Content-Length", object))")
                })
            task.resume()
        },
        CallSite("a stream as the body of a request", "POST /post streamed") { server, report in
            let request = NSMutableURLRequest(url: URL(string: server + "post")!)
            request.httpMethod = "POST"
            request.httpBodyStream = InputStream(data: Data("streamed".utf8))
            AFURLSessionManager().uploadTask(withStreamedRequest: request as URLRequest, progress: nil) { _, object, _ in
                report(line(object))
            }.resume()
        },
    ]

    static let downloads = [
        CallSite("a download", "100000 report.bin") { server, report in
            let manager = AFURLSessionManager(sessionConfiguration: URLSessionConfiguration.default)
            let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try! FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            let request = URLRequest(url: URL(string: server + "report.bin")!)
            let downloadTask = manager.downloadTask(
                with: request, progress: { (downloadProgress: Progress) in },
                destination: { (targetPath, response) -> URL in
                    return directory.appendingPathComponent(response.suggestedFilename ?? "file")
                },
                completionHandler: { (response, filePath, error) in
                    let size = (try? Data(contentsOf: filePath!))?.count ?? 0
                    remove(filePath!)
                    report("\(size) \(filePath!.lastPathComponent)")
                })
            downloadTask.resume()
        },
        CallSite("a download with progress", "true") { server, report in
            let manager = AFHTTPSessionManager()
            var last = 0.0
            manager.downloadTask(
                with: URLRequest(url: URL(string: server + "report.bin")!), progress: { last = $0.fractionCompleted },
                destination: { url, _ in url.appendingPathExtension("kept") },
                completionHandler: { _, url, error in
                    let isThere = FileManager.default.fileExists(atPath: url!.path)
                    try? FileManager.default.removeItem(at: url!)
                    report("\(last == 1 && error == nil && isThere)")
                }
            ).resume()
        },
        CallSite("a cancelled download", "-999 nil") { server, report in
            let task = AFURLSessionManager().downloadTask(
                with: URLRequest(url: URL(string: server + "hang")!), progress: nil, destination: nil,
                completionHandler: { _, url, error in
                    report("\((error! as NSError).code) \(url?.path ?? "nil")")
                })
            task.resume()
            task.cancel { (resumeData) in _ = resumeData }
        },
        CallSite("a download of a missing resource", "-1011 moved") { server, report in
            let place = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            AFURLSessionManager().downloadTask(
                with: URLRequest(url: URL(string: server + "missing")!), progress: nil, destination: { _, _ in place },
                completionHandler: { _, url, error in
                    let isThere = FileManager.default.fileExists(atPath: place.path)
                    try? FileManager.default.removeItem(at: place)
                    report("\((error! as NSError).code) \(isThere && url == place ? "moved" : "not there")")
                }
            ).resume()
        },
        CallSite("the progress of a task", "-1") { server, report in
            let manager = AFURLSessionManager()
            let task = manager.dataTask(with: URLRequest(url: URL(string: server + "hang")!)) { _, _, _ in }
            task.resume()
            report("\(manager.downloadProgress(for: task)!.totalUnitCount)")
            task.cancel()
        },
    ]
}
