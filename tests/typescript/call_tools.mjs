// Calls tools with a client of the TypeScript SDK, and prints what it got as JSON. The plan is the first argument:
// {sdk, url?, token?, command?, args?, calls: [[name, arguments], …]}
const plan = JSON.parse(process.argv[2]);
const isNew = plan.sdk === "@modelcontextprotocol/client";
const { Client } = await import(isNew ? plan.sdk : `${plan.sdk}/client/index.js`);

const client = new Client({ name: "commonplace-tests", version: "1.0.0" });
await client.connect(await transport());
const { tools } = await client.listTools();
const results = [];
for (const [name, args] of plan.calls) {
  // The client checks structured content against the schema of the tool.
  results.push(await client.callTool({ name, arguments: args }));
}
await client.close();
console.log(JSON.stringify({ tools, results }));

async function transport() {
  if (plan.url) {
    const { StreamableHTTPClientTransport } = await import(isNew ? plan.sdk : `${plan.sdk}/client/streamableHttp.js`);
    return new StreamableHTTPClientTransport(new URL(plan.url), {
      requestInit: { headers: { Authorization: `Bearer ${plan.token}` } },
    });
  }
  const { StdioClientTransport } = await import(isNew ? `${plan.sdk}/stdio` : `${plan.sdk}/client/stdio.js`);
  return new StdioClientTransport({ command: plan.command, args: plan.args, env: process.env });
}
