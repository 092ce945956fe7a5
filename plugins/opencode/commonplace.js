// Commonplace for OpenCode: hands its events to `commonplace-hook`. Written by `commonplace setup`; edits are lost.
import { spawn } from "node:child_process"

const HOOK = "commonplace-hook"
const DEADLINE_MS = 2000
const OUTPUT_CHARS_MAX = 20000
const CONTEXT_CHARS_MAX = 8000

// The hook reads an event on stdin, in Claude Code's form, and prints what the model should know, if anything.
// Whatever goes wrong here is nobody's concern but ours: the promise is always kept, at the latest by the deadline.
function tell(args, event) {
  return new Promise((done) => {
    let said = ""
    const finish = () => {
      clearTimeout(timer)
      try {
        done(JSON.parse(said).hookSpecificOutput.additionalContext ?? "")
      } catch {
        done("")
      }
    }
    const child = spawn(HOOK, ["opencode", ...args], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
    const timer = setTimeout(() => (child.kill(), finish()), DEADLINE_MS)
    child.on("error", finish)
    child.on("close", finish)
    child.stdout.on("data", (data) => (said += data))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(event))
  })
}

export const Commonplace = async ({ directory }) => {
  const context = new Map() // What a session should know, by its id: told at its start, then whatever its prompts add.
  const event = (name, session, more = {}) => ({ hook_event_name: name, session_id: session, cwd: directory, ...more })
  const begin = (session, source) => {
    if (!context.has(session) || source === "compact")
      context.set(session, tell(["--ensure"], event("SessionStart", session, { source })))
    return context.get(session)
  }
  // Nothing is answered to these events, so OpenCode does not wait for them; they still arrive one after the other.
  let queue = Promise.resolve()
  const later = (happened) => void (queue = queue.then(() => tell([], happened)))
  const end = (session) => context.delete(session) && tell([], event("SessionEnd", session, { reason: "other" }))

  return {
    event: async ({ event: happened }) => {
      const session = happened.properties?.sessionID ?? happened.properties?.info?.id
      if (!session) return
      if (happened.type === "session.idle") later(event("Stop", session))
      if (happened.type === "session.compacted") await begin(session, "compact")
      if (happened.type === "session.deleted") await queue.then(() => end(session))
    },
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\n")
      const before = await begin(sessionID, "startup")
      const found = await tell([], event("UserPromptSubmit", sessionID, { prompt }))
      context.set(sessionID, Promise.resolve([before, found].filter(Boolean).join("\n\n").slice(-CONTEXT_CHARS_MAX)))
    },
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      const known = sessionID && context.has(sessionID) ? await context.get(sessionID) : ""
      if (known) output.system.push(known)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, { output, metadata }) => {
      const failed = typeof metadata?.exit === "number" && metadata.exit !== 0
      const text = String(output ?? "").slice(0, OUTPUT_CHARS_MAX)
      const said = { tool_name: tool, tool_input: args, tool_use_id: callID }
      if (failed) later(event("PostToolUseFailure", sessionID, { ...said, error: text }))
      else later(event("PostToolUse", sessionID, { ...said, tool_response: text }))
    },
    "experimental.session.compacting": async ({ sessionID }) => {
      later(event("PreCompact", sessionID, { trigger: "auto" }))
    },
    dispose: async () => {
      await queue
      await Promise.all([...context.keys()].map(end))
    },
  }
}
