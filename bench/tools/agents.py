"""Writes conversations of agents as bench/tools reads them, from three public sources that are not part of this repository.

    pip install bfcl-eval agentdojo mpmath          # or, without what they need besides: pip download --no-deps, unzip
    python bench/tools/agents.py bfcl FOLDER_OF_THE_PACKAGE OUT     # the 200 tasks of multi_turn_base, BFCL v4 (Apache-2.0)
    python bench/tools/agents.py agentdojo - OUT                    # the 97 user tasks of AgentDojo v1.2.1 (MIT)
    python bench/tools/agents.py tau FOLDER_OF_TAU_BENCH OUT        # 50 conversations of gpt-4o, tau-bench airline (MIT)

Each writes OUT/NAME.jsonl, a conversation a line, and OUT/NAME.tools.json, the tools that all of them are offered. The first
two run the calls of the solution, one after the other, with the package's own functions, so that results are real; the third
has what a model and a simulated user said and what the model called, the first of four trials. `merge OUT A B NEW` puts two
together, and offers each the tools of both.
"""

import ast
import importlib
import json
import pathlib
import sys
import types


def tool(name, about, parameters):
    return {"type": "function", "function": {"name": name, "description": about, "parameters": parameters}}


def call(k, name, arguments, result):
    made = {"id": f"call_{k}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments, default=str)}}
    return [{"role": "assistant", "content": None, "tool_calls": [made]}, {"role": "tool", "tool_call_id": f"call_{k}", "content": result}]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write(out, name, tools, talks):
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.tools.json").write_text(json.dumps(tools))
    (out / f"{name}.jsonl").write_text("".join(json.dumps(t, default=str) + "\n" for t in talks))
    calls = sum(len(m.get("tool_calls") or []) for t in talks for m in t["messages"])
    print(f"{name}: {len(talks)} conversations, {calls} calls, {len(tools)} tools")


def bfcl(package, out):
    sys.path.insert(0, str(package.parent))
    execute = importlib.import_module("bfcl_eval.eval_checker.multi_turn_eval.multi_turn_utils").execute_multi_turn_func_call
    data = package / "data"
    services = ["gorilla_file_system", "math_api", "message_api", "posting_api", "ticket_api", "trading_bot", "travel_booking", "vehicle_control"]
    tools = [tool(f["name"], f["description"], f["parameters"]) for s in services for f in lines(data / f"multi_turn_func_doc/{s}.json")]
    names = {t["function"]["name"]: list(t["function"]["parameters"]["properties"]) for t in tools}
    talks = []
    for task, solution in zip(lines(data / "BFCL_v4_multi_turn_base.json"), lines(data / "possible_answer/BFCL_v4_multi_turn_base.json")):
        messages, k = [], 0
        for said, calls in zip(task["question"], solution["ground_truth"]):
            messages += [{"role": m["role"], "content": m["content"]} for m in said]
            for c in calls:
                parsed = ast.parse(c, mode="eval").body
                name = parsed.func.id
                results, _ = execute([c], task["initial_config"], task["involved_classes"], "x", task["id"])
                arguments = dict(zip(names[name], map(ast.literal_eval, parsed.args)))
                arguments |= {a.arg: ast.literal_eval(a.value) for a in parsed.keywords}
                messages += call(k, name, arguments, results[0])
                k += 1
            messages.append({"role": "assistant", "content": "Done."})
        talks.append({"id": task["id"], "messages": messages})
    write(out, "bfcl", tools, talks)


def agentdojo(_, out):
    from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
    from agentdojo.functions_runtime import FunctionsRuntime
    from agentdojo.task_suite.load_suites import get_suites

    tools, talks = {}, []
    for suite in get_suites("v1.2.1").values():
        for t in suite.tools:
            tools.setdefault(t.name, tool(t.name, t.description, t.parameters.model_json_schema()))
        for name, task in suite.user_tasks.items():
            world = task.init_environment(suite.load_and_inject_default_environment({}))
            runtime, messages = FunctionsRuntime(suite.tools), [{"role": "user", "content": task.PROMPT}]
            for k, c in enumerate(task.ground_truth(world)):
                result, error = runtime.run_function(world, c.function, dict(c.args))
                messages += call(k, c.function, dict(c.args), error or tool_result_to_str(result))
            talks.append({"id": f"{suite.name}_{name}", "messages": messages})
    write(out, "agentdojo", list(tools.values()), talks)


def tau(folder, out):
    for name in ("tau_bench", "tau_bench.envs", "tau_bench.envs.airline", "tau_bench.envs.retail"):
        sys.modules[name] = types.ModuleType(name)  # the packages themselves import what is not needed here
        sys.modules[name].__path__ = [str(folder / name.replace(".", "/"))]
    sys.modules["tau_bench.envs.tool"] = types.ModuleType("tool")
    sys.modules["tau_bench.envs.tool"].Tool = object
    tools = {}
    for domain in ("airline", "retail"):
        for t in importlib.import_module(f"tau_bench.envs.{domain}.tools").ALL_TOOLS:
            tools.setdefault(t.get_info()["function"]["name"], t.get_info())
    talks = []
    for x in json.loads((folder / "historical_trajectories/gpt-4o-airline.json").read_text()):
        if x["trial"] == 0:
            kept = [{k: m[k] for k in ("role", "content", "tool_calls", "tool_call_id") if m.get(k) or k == "content"} for m in x["traj"]]
            talks.append({"id": f"tau_{x['task_id']}", "messages": kept})
    write(out, "tau", list(tools.values()), talks)


def merge(out, a, b, new):
    tools, talks = {}, []
    for name in (a, b):
        for t in json.loads((out / f"{name}.tools.json").read_text()):
            tools.setdefault(t["function"]["name"], t)
        talks += lines(out / f"{name}.jsonl")
    write(out, new, list(tools.values()), talks)


if __name__ == "__main__":
    if sys.argv[1] == "merge":
        merge(pathlib.Path(sys.argv[2]), *sys.argv[3:])
    else:
        globals()[sys.argv[1]](pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
