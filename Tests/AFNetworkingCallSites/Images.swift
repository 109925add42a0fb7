// SPDX-License-Identifier: MIT

import AFNetworking

extension CallSite {
    static let images = [
        CallSite("an image with a session manager", "850.0 x 300.0") { server, report in
            let manager = AFHTTPSessionManager(baseURL: URL(string: server))
            manager.responseSerializer = AFImageResponseSerializer()
            manager.get(
                "picture.png", parameters: nil, headers: nil, progress: nil,
                success: { _, responseObject in
                    let image = responseObject as? UIImage
                    report(image.map { "\($0.size.width) x \($0.size.height)" } ?? "nil")
                },
                failure: { _, error in report("\(error)") })
        },
        CallSite("an image downloader, then its cache", "850.0, cached") { server, report in
            let request = URLRequest(
                url: URL(string: server + "picture.png")!, cachePolicy: .returnCacheDataElseLoad, timeoutInterval: 30.0)
            let downloader = AFImageDownloader(sessionConfiguration: .default)
            let receipt = downloader.downloadImage(
                for: request,
                success: { (request, response, image) in
                    let cached = downloader.imageCache?.imageforRequest(request, withAdditionalIdentifier: nil)
                    report("\(image.size.width), \(cached === image ? "cached" : "not cached")")
                },
                failure: { (request, response, error) in report(error.localizedDescription) })
            if receipt == nil { report("no receipt") }
        },
        CallSite("an additional media type, and a cancelled image", "-999") { server, report in
            let downloader = AFImageDownloader()
            downloader.sessionManager.responseSerializer.acceptableContentTypes?.insert("image/jp2")
            let request = URLRequest(url: URL(string: server + "hang")!)
            guard
                let receipt = downloader.downloadImage(
                    for: request, success: { _, _, _ in report("success") },
                    failure: { _, _, error in report("\((error as NSError).code)") })
            else { return }
            downloader.cancelTask(for: receipt)
        },
        CallSite("an image in the cache of the default downloader", "same") { server, report in
            let request = URLRequest(url: URL(string: server + "logo")!)
            let png = Data(base64Encoded: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAAA=")!
            let image = UIImage(data: png)!
            AFImageDownloader.defaultInstance().imageCache?.add(image, for: request, withAdditionalIdentifier: nil)
            AFImageDownloader.defaultInstance().downloadImage(
                for: request, success: { _, response, found in report(found === image ? "same" : "other") },
                failure: { _, _, error in report("\(error)") })
        },
        CallSite("the activity indicator", "true") { server, report in
            AFNetworkActivityIndicatorManager.shared().isEnabled = true
            AFNetworkActivityIndicatorManager.shared().setNetworkingActivityActionWith { visible in print(visible) }
            report("\(AFNetworkActivityIndicatorManager.shared().isEnabled)")
            AFNetworkActivityIndicatorManager.shared().isEnabled = false
            AFNetworkActivityIndicatorManager.shared().setNetworkingActivityActionWith(nil)
        },
    ]
}
