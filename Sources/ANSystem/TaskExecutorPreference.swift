// SPDX-License-Identifier: MIT

/// The task executor that the current task prefers; `nil` if it prefers none. Child tasks inherit it, while an
/// unstructured task must be given it, as by `Task(executorPreference:)`.
package var currentTaskExecutor: (any TaskExecutor)? {
    unsafe withUnsafeCurrentTask { task in unsafe task?.unownedTaskExecutor?.asTaskExecutor() }
}
