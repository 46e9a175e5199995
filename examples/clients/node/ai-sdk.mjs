// Vercel AI SDK, by its OpenAI provider (chat and Responses) and its provider for compatible
// servers: text, two turns, a stream, a tool loop, an object by schema, embeddings.
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { embed, generateText, Output, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';

const baseURL = process.env.SIGNALBOX_URL ?? 'http://127.0.0.1:8080/v1';
const apiKey = process.env.SIGNALBOX_API_KEY ?? 'none';
const topic = 'How long do I simmer risotto for four people?';
const weather = 'What is the weather in Oslo? Use the tool get_weather.';
const named = process.env.SIGNALBOX_MODEL ?? 'general-7b';
const tried = [];

function check(ok, message) {
  if (!ok) {
    console.error(`ai-sdk: ${message}`);
    process.exit(1);
  }
}

function answered(text, what) {
  check(text?.trim(), `${what}: the answer is empty`);
  check(!text.includes('declined by policy'), `${what}: declined: ${text}`);
  tried.push(what);
}

async function run(name, model, providerOptions) {
  const first = await generateText({ model, providerOptions, system: 'You are a cook.', prompt: topic });
  answered(first.text, `${name}: text`);
  const messages = [
    { role: 'user', content: topic },
    ...first.response.messages,
    { role: 'user', content: 'And for six?' },
  ];
  answered((await generateText({ model, providerOptions, messages })).text, `${name}: second turn`);

  const streamed = streamText({ model, providerOptions, prompt: topic });
  let text = '';
  for await (const part of streamed.textStream) text += part;
  answered(text, `${name}: stream`);
  check((await streamed.usage).outputTokens > 0, `${name}: the stream has no usage`);

  const asked = [];
  const get_weather = tool({
    description: 'The weather of a city.',
    inputSchema: z.object({ city: z.string() }),
    execute: async ({ city }) => {
      asked.push(city);
      return `It is sunny in ${city}.`;
    },
  });
  const loop = await generateText({
    model, providerOptions, prompt: weather, tools: { get_weather }, stopWhen: stepCountIs(3),
  });
  answered(loop.text, `${name}: tool loop`);
  check(asked.length > 0, `${name}: the tool was not called`);

  const schema = z.object({ title: z.string(), minutes: z.number() });
  const { output } = await generateText({
    model, providerOptions, prompt: topic, output: Output.object({ schema }),
  });
  check(typeof output.minutes === 'number', `${name}: the object is ${JSON.stringify(output)}`);
  tried.push(`${name}: object`);
}

const openai = createOpenAI({ baseURL, apiKey });
const compatible = createOpenAICompatible({
  name: 'signalbox', baseURL, apiKey, includeUsage: true, supportsStructuredOutputs: true,
});
await run('chat', openai.chat('auto'));
// Without store the SDK sends earlier turns whole; with it it names items that the server keeps,
// which few servers but OpenAI's do.
await run('responses', openai.responses('auto'), { openai: { store: false } });
await run('compatible', compatible('auto'));
const { embedding } = await embed({ model: openai.embedding(named), value: 'rice' });
check(embedding.length > 0, 'the embedding is empty');
tried.push('embedding');
console.log(`tried: ${tried.join(', ')}`);
