"""Engines say and do what `tailor scan` and `tailor fix` say and do on one machine, row by row: text, binary and nested messages.
Those that are not installed are skipped; TAILOR_ENGINES=all makes that an error."""

import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import CHAT, FIXTURES, MESSAGE, conversations, corpus, drop_null, env, findings, line_of, of_finding

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
sys.path.insert(0, str(EXAMPLES))
SOUND = ("clean", "fixed")


def engine(name):
    if os.environ.get("TAILOR_ENGINES") == "all":
        return importlib.import_module(name)
    return pytest.importorskip(name)


def texts():
    """Sessions of every kind: fixtures, real ones, and rows that are none."""
    paths = [path for path in FIXTURES if not (path.parent / "policy.args").exists()]
    paths = paths[:: int(os.environ.get("TAILOR_ENGINES_OF", "3"))] + [path for path in corpus() if path.stat().st_size < 200_000]
    read = [path.read_bytes() for path in paths]
    generated = [json.dumps({"messages": [*CHAT[:3], {"role": "assistant", "content": f"{n}"}]}).encode() for n in range(100)]
    return [*read, *generated, b"not JSON", b""]


def is_utf8(text):
    try:
        return text.decode() is not None
    except UnicodeDecodeError:
        return False


class Data:
    """Rows of one kind in a Parquet file, and what the program says of each and makes of it, by what was its line or its file."""

    def __init__(self, tailor, folder, kind):
        self.column = "messages" if kind == "nested" else "session"
        if kind == "nested":
            rows = conversations()
            texts_of_rows = [line_of({"messages": row}) for row in rows]
            column = pa.array(rows, pa.list_(MESSAGE))
        else:
            texts_of_rows = [text for text in texts() if kind == "binary" or is_utf8(text)]
            if kind == "binary":
                texts_of_rows = [*texts_of_rows[::4], b"\xff\xfe", b'{"messages":[{"role":"user","content":"\xff"}]}']
            column = pa.array(texts_of_rows, pa.binary()) if kind == "binary" else pa.array([text.decode() for text in texts_of_rows])
        self.path = folder / f"{kind}.parquet"
        self.table = pa.table({"id": pa.array(range(len(column)), pa.int64()), self.column: column})
        pq.write_table(self.table, self.path, row_group_size=100)
        self.findings, self.texts, self.unread = [], [], set()
        for n, text in enumerate(texts_of_rows):
            report, _ = tailor("scan", text)
            self.findings.append(findings(report))
            self.texts.append(tailor("fix", text)[1] if report["findings"] else text)
            if report["outcome"] == "unsupported":
                self.unread.add(n)

    def holds(self, n, value):
        """Whether a mended row is what the program makes of it."""
        if self.column == "messages":
            return {"messages": drop_null(value)} == json.loads(self.texts[n])
        return (value.encode() if isinstance(value, str) else bytes(value)) == self.texts[n]

    def same(self, found, mended):
        """Both as lists of dicts, in any order of rows; what is said of a row is in the order of its lines."""
        own = {}
        for finding in found:
            own.setdefault(finding["id"], []).append(finding)
        for n, expected in enumerate(self.findings):
            of_row = own.get(n, [])
            if n in self.unread:
                # Either it is no session, with a reason, or of a format that is only read.
                assert all(finding["code"] is None and finding["message"] for finding in of_row) and len(of_row) < 2, of_row
            else:
                assert [of_finding(finding) for finding in of_row] == expected
        by_id = {row["id"]: row for row in mended}
        assert len(mended) == len(by_id) == len(self.texts), "a row was lost, or is there twice"
        for n in range(len(self.texts)):
            assert self.holds(n, by_id[n][self.column]), by_id[n]
        assert len({row["tailor_outcome"] for row in mended}) >= 2
        assert all(row["tailor_reason"] for row in mended if row["tailor_outcome"] in ("unreadable", "refused", "findings"))

    def kept(self, kept, dropped):
        """What an example's program has written: which rows, and of those dropped why."""
        assert sorted(row["id"] for row in kept + dropped) == list(range(len(self.texts)))
        assert kept and all(row["tailor_outcome"] in SOUND and self.holds(row["id"], row[self.column]) for row in kept)
        assert all(row["tailor_outcome"] not in SOUND and row["tailor_reason"] for row in dropped)


KINDS = ["text", "binary", "nested"]


@pytest.fixture(scope="session")
def made(tailor, tmp_path_factory):
    folder, known = tmp_path_factory.mktemp("engines"), {}
    return lambda kind: known.setdefault(kind, None) or known.update({kind: Data(tailor, folder, kind)}) or known[kind]


@pytest.fixture(params=KINDS)
def data(request, made):
    return made(request.param)


def rows(path):
    return pq.read_table(path).to_pylist()


def main_of(name, source, target):
    """Runs an example as its reader would."""
    words = [sys.executable, str(EXAMPLES / f"{name}.py"), str(source), str(target)]
    path = os.pathsep.join([str(EXAMPLES), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(words, env=env() | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rest(data, kept):
    """What an example only prints of the others."""
    there = {row["id"] for row in kept}
    return [{"id": n, "tailor_outcome": "findings", "tailor_reason": "printed"} for n in range(len(data.texts)) if n not in there]


def test_hugging_face_datasets(data, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    datasets, example = engine("datasets"), importlib.import_module("hf_datasets")
    given = datasets.Dataset.from_parquet(str(data.path), cache_dir=str(tmp_path))
    session_tailor, chosen = importlib.import_module("session_tailor"), given.select(range(1, len(given)))
    every, kept = (session_tailor.check(some).to_pyarrow()["row"].to_pylist() for some in (given, chosen))
    assert [row + 1 for row in kept] == [row for row in every if row > 0] != []
    data.same(example.check(given).with_format(None).to_list(), example.mend(given).with_format(None).to_list())
    main_of("hf_datasets", data.path, tmp_path / "out")
    data.kept(rows(tmp_path / "out.parquet"), rows(tmp_path / "out.dropped.parquet"))


def test_duckdb(data, tmp_path):
    engine("duckdb")
    example = importlib.import_module("duck")
    data.same(example.check(data.path).to_pylist(), example.mend(data.path).read_all().to_pylist())
    printed = main_of("duck", data.path, tmp_path / "out")
    kept = rows(tmp_path / "out.parquet")
    data.kept(kept, rest(data, kept))
    assert "tailor_reason" in printed


def test_polars(data, tmp_path):
    polars, example = engine("polars"), importlib.import_module("polars_frames")
    frame = polars.read_parquet(data.path)
    data.same(example.check(frame).to_dicts(), example.mend(frame).to_dicts())
    main_of("polars_frames", data.path, tmp_path / "out")
    kept = rows(tmp_path / "out.parquet")
    data.kept(kept, rest(data, kept))


def test_daft(data, tmp_path):
    daft, example = engine("daft"), importlib.import_module("daft_frames")
    frame = daft.read_parquet(str(data.path))
    data.same(example.check(frame, data.column).to_pylist(), example.mend(frame, data.column).to_pylist())
    if data.column == "session":
        main_of("daft_frames", data.path, tmp_path / "out")
        kept = rows(tmp_path / "out")
        data.kept(kept, rest(data, kept))


def test_ray_data(made, tmp_path):
    ray, example = engine("ray.data"), importlib.import_module("ray_data")
    ray = importlib.import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}})
    try:
        for kind in KINDS:
            data = made(kind)
            given = ray.data.read_parquet(str(data.path))
            data.same(example.check(given).take_all(), example.mend(given).take_all())
    finally:
        ray.shutdown()
    data = made("nested")
    main_of("ray_data", data.path, tmp_path / "out")
    data.kept(rows(tmp_path / "out/kept"), rows(tmp_path / "out/dropped"))


CLUSTER = "a cluster of two workers"


@pytest.fixture
def cluster(tmp_path):
    """Starts a master and two workers of one core each, with JVMs of their own, when it is called: the master's address."""
    started = []

    def start(kind, *words):
        home = Path(engine("pyspark").__file__).parent
        log = tmp_path / f"{len(started)}-{kind}.log"
        command = [home / "bin/spark-class", f"org.apache.spark.deploy.{kind}", "--host", "127.0.0.1", "--webui-port", "0", *words]
        with log.open("wb") as out:
            started.append(subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=os.environ | {"SPARK_HOME": str(home)}))
        return log

    def says(log, word):
        for _ in range(1800):
            line = next((line for line in log.read_text().splitlines() if word in line), None)
            if line:
                return line
            time.sleep(0.1)
        raise TimeoutError(log.read_text())

    def run():
        address = says(start("master.Master", "--port", "0"), "Starting Spark master at").split()[-1]
        for n in range(2):
            says(start("worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(tmp_path / f"worker-{n}"), address), "Successfully registered")
        return address

    yield run
    for process in reversed(started):
        process.kill()
        process.wait()


@pytest.fixture
def spark(request, tmp_path, cluster):
    engine("pyspark")
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)
    builder = SparkSession.builder.master(cluster() if request.param == CLUSTER else request.param).config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "64").config("spark.driver.host", "127.0.0.1")
    builder = builder.config("spark.executorEnv.PYTHONPATH", os.pathsep.join(sys.path)).config("spark.local.dir", str(tmp_path))
    builder = builder.config("spark.executorEnv.PYSPARK_PYTHON", sys.executable).config("spark.sql.files.maxPartitionBytes", "200k")
    # The JVM of an earlier test has the environment of that time.
    for name in ("S3_ENDPOINT", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        builder = builder.config(f"spark.executorEnv.{name}", os.environ.get(name, ""))
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.mark.parametrize("spark", ["local[2]", CLUSTER], indirect=True)
def test_spark(made, spark):
    example = importlib.import_module("spark")
    for kind in KINDS:
        data = made(kind)
        given = spark.read.parquet(str(data.path)).repartition(4)
        found = [row.asDict() for row in example.check(given).collect()]
        data.same(found, [row.asDict(recursive=True) for row in example.mend(given).collect()])


def test_the_program_of_spark(made, tmp_path):
    engine("pyspark")
    data = made("text")
    main_of("spark", data.path, tmp_path / "out")
    data.kept(rows(tmp_path / "out/kept"), rows(tmp_path / "out/dropped"))


@pytest.mark.parametrize("spark", ["local[2]"], indirect=True)
def test_spark_pipe(spark, tmp_path):
    """Each partition through a program of its own, as docs/scale.md has it."""
    lines = [line_of({"messages": row}).decode()[:-1] for row in conversations()]
    program = f"{os.environ['TAILOR_PROGRAM']} fix --lines --exit-zero -"
    piped = spark.sparkContext.parallelize(lines, 3).pipe(program, env=env(), checkCode=True).collect()
    alone = subprocess.run(program.split(), input="\n".join(lines) + "\n", capture_output=True, text=True, env=env(), check=True)
    assert piped == alone.stdout.splitlines() and len(piped) == len(lines) and piped != lines


@pytest.fixture
def bucket(monkeypatch):
    moto = engine("moto.server")
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    monkeypatch.setenv("S3_ENDPOINT", f"http://{host}:{port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    fs = importlib.import_module("pyarrow.fs")
    example = importlib.import_module("spark_s3")
    keys = {"access_key": "testing", "secret_key": "testing"}
    fs.S3FileSystem(endpoint_override=f"{host}:{port}", scheme="http", region="us-east-1", allow_bucket_creation=True, **keys).create_dir("sets")
    # The server keeps what an earlier test has stored.
    example.store().delete_dir_contents("sets")
    yield example.store()
    server.stop()


def store_objects(bucket, table, count):
    step = -(-table.num_rows // count)
    for n in range(count):
        with bucket.open_output_stream(f"sets/in/{n}.parquet") as out:
            pq.write_table(table.slice(n * step, step), out, row_group_size=50)


def stored(bucket, data, count):
    """Every object is there, and in them every row once, as the program leaves it."""
    names = sorted(info.path for info in bucket.get_file_info(pa.fs.FileSelector("sets/out")) if info.is_file)
    assert names == [f"sets/out/{n}.parquet" for n in range(count)]
    mended = pa.concat_tables(pq.read_table(name, filesystem=bucket) for name in names).to_pylist()
    assert sorted(row["id"] for row in mended) == list(range(data.table.num_rows))
    assert all(data.holds(row["id"], row["session"]) for row in mended)


@pytest.mark.parametrize("spark", ["local[2,4]", CLUSTER], indirect=True)
def test_an_object_store_and_a_worker_that_is_killed(made, bucket, spark, tmp_path, monkeypatch):
    """A worker is killed in the middle of an object; Spark does it again, and no row is lost or there twice. Of a cluster it is
    a whole worker: Python, the executor above it, and the worker above that."""
    example = importlib.import_module("spark_s3")
    data = made("text")
    store_objects(bucket, data.table, 4)
    marker = str(tmp_path / "killed")
    generations = 1 if spark.sparkContext.master.startswith("local") else 4
    run = example.mend_objects("sets/out")

    def run_and_be_killed(batches):
        import signal

        import session_tailor
        import spark_s3

        spark_s3.ROWS = 20

        mend = session_tailor.mend

        def kill_worker():
            pids = [os.getpid()]
            while len(pids) < generations:
                with open(f"/proc/{pids[-1]}/stat") as stat:
                    pids.append(int(stat.read().rpartition(")")[2].split()[1]))
            for pid in reversed(pids):
                os.kill(pid, signal.SIGKILL)

        def mend_some(given):
            def some():
                for n, batch in enumerate(given):
                    if n == 1 and not os.path.exists(marker):
                        open(marker, "w").close()
                        kill_worker()
                    yield batch

            return mend(pa.RecordBatchReader.from_batches(given.schema, some()))

        session_tailor.mend = mend_some
        try:
            yield from run(batches)
        finally:
            session_tailor.mend = mend

    monkeypatch.setattr(example, "mend_objects", lambda target: run_and_be_killed)
    told = [row.asDict() for row in example.mend(spark, "sets/in", "sets/out").collect()]
    assert os.path.exists(marker)
    stored(bucket, data, 4)
    assert sum(row["rows"] for row in told) == data.table.num_rows
    again = example.mend(spark, "sets/in", "sets/out").collect()
    assert again == [], "what is done is not done twice"
    bucket.delete_file("sets/out/2.parquet")
    (again,) = example.mend(spark, "sets/in", "sets/out").collect()
    assert again["object"] == "sets/in/2.parquet", "only what is not there is done"
    assert pq.read_table("sets/out/2.parquet", filesystem=bucket).num_rows == again["rows"]


def test_a_run_that_is_killed_whole_is_started_again(made, bucket, tmp_path):
    """The driver with all that it has started dies between two objects; the same command does the rest, and clears up."""
    engine("pyspark")
    data = made("text")
    store_objects(bucket, data.table, 6)
    words = [sys.executable, str(EXAMPLES / "spark_s3.py"), "sets/in", "sets/out"]
    kept = env() | {"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", "MASTER": "local[1]"}
    kept |= {"PYSPARK_SUBMIT_ARGS": "--master local[1] --conf spark.ui.enabled=false pyspark-shell"}
    first = subprocess.Popen(words, env=kept, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def done():
        listed = bucket.get_file_info(pa.fs.FileSelector("sets/out", allow_not_found=True))
        return {info.base_name: info.mtime for info in listed if info.is_file}

    while not done():
        assert first.poll() is None, "it ended without an object"
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    before = done()
    assert 0 < len(before) < 6, "it was killed too late"
    # What a task has left that died while it wrote.
    with bucket.open_output_stream("sets/out/_parts/5.parquet.dead") as out:
        out.write(b"half of an object")
    again = subprocess.run(words, env=kept, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    stored(bucket, data, 6)
    assert all(done()[name] == written for name, written in before.items()), "what was there is not done twice"
    left = [info for info in bucket.get_file_info(pa.fs.FileSelector("sets/out/_parts", allow_not_found=True)) if info.is_file]
    assert left == []


def test_gnu_parallel(tmp_path):
    """The recipe of docs/scale.md: blocks of lines through programs beside each other, in their order."""
    if shutil.which("parallel") is None:
        pytest.skip("GNU parallel is not installed")
    text = b"".join(line_of({"messages": row}) for row in conversations()) * 20
    program = [os.environ["TAILOR_PROGRAM"], "fix", "--lines", "--exit-zero", "-"]
    words = ["parallel", "--no-notice", "--pipe", "--keep-order", "--block", "100k", "-j", "2", *program]
    done = subprocess.run(words, input=text, capture_output=True, env=env() | {"HOME": str(tmp_path)}, check=True)
    assert done.stdout == subprocess.run(program, input=text, capture_output=True, env=env(), check=True).stdout
    assert done.stdout != text


def test_findings_as_parquet(tmp_path):
    """What the program finds in a pipe, as Parquet, is what the module finds."""
    duckdb, session_tailor = engine("duckdb"), importlib.import_module("session_tailor")
    text = b"".join(line_of({"messages": row}) for row in conversations())
    found = tmp_path / "found.jsonl.zst"
    words = [os.environ["TAILOR_PROGRAM"], "fix", "--lines", "--exit-zero", "--findings", str(found), "-"]
    subprocess.run(words, input=text, stdout=subprocess.DEVNULL, env=env(), check=True)
    duckdb.sql(f"copy (from read_json('{found}')) to '{tmp_path}/found.parquet'")
    columns = "row, line, code, severity, message, fix"
    own = duckdb.sql(f"select {columns} from '{tmp_path}/found.parquet' order by all").fetchall()
    sessions = pa.table({"session": text.decode().splitlines()})
    found = session_tailor.check(sessions, format="openai-dataset").to_pyarrow()
    assert own == duckdb.sql(f"select {columns} from found order by all").fetchall() and own
