import edu.emory.clir.clearnlp.component.AbstractComponent;
import edu.emory.clir.clearnlp.component.mode.dep.DEPConfiguration;
import edu.emory.clir.clearnlp.component.utils.GlobalLexica;
import edu.emory.clir.clearnlp.component.utils.NLPUtils;
import edu.emory.clir.clearnlp.dependency.DEPNode;
import edu.emory.clir.clearnlp.dependency.DEPTree;
import edu.emory.clir.clearnlp.util.lang.TLanguage;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.io.PrintWriter;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;

/**
 * Parses sentences for nli_parse.py: on a port of loopback it reads a sentence a line, its words between blanks, and an empty line
 * behind a text. It writes a line a word (lemma, part of speech, number of the head from 1 or 0, label, name in BILOU), an empty
 * line behind a sentence, and # behind a text.
 */
public class Parse {
  public static void main(String[] args) throws Exception {
    GlobalLexica.initDistributionalSemanticsWords(List.of("brown-rcv1.clean.tokenized-CoNLL03.txt-c1000-freq1.txt.xz"));
    GlobalLexica.initNamedEntityDictionary("general-en-ner-gazetteer.xz");
    AbstractComponent[] steps = {
      NLPUtils.getPOSTagger(TLanguage.ENGLISH, "general-en-pos.xz"), NLPUtils.getMPAnalyzer(TLanguage.ENGLISH),
      NLPUtils.getDEPParser(TLanguage.ENGLISH, "general-en-dep.xz", new DEPConfiguration("root")),
      NLPUtils.getNERecognizer(TLanguage.ENGLISH, "general-en-ner.xz"),
    };
    try (ServerSocket socket = new ServerSocket(Integer.parseInt(args[0]), 4, InetAddress.getLoopbackAddress())) {
      while (true) {
        Socket client = socket.accept();
        new Thread(() -> serve(client, steps)).start();
      }
    }
  }

  private static void serve(Socket client, AbstractComponent[] steps) {
    try (client;
        BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream(), StandardCharsets.UTF_8));
        PrintWriter out = new PrintWriter(new BufferedWriter(new OutputStreamWriter(client.getOutputStream(), StandardCharsets.UTF_8)))) {
      for (String line; (line = in.readLine()) != null; ) {
        if (line.isEmpty()) {
          out.println("#");
          out.flush();
          continue;
        }
        DEPTree tree = new DEPTree(Arrays.asList(line.split(" ")));
        for (AbstractComponent step : steps) {
          step.process(tree);
        }
        for (int i = 1; i < tree.size(); i++) {
          DEPNode n = tree.get(i);
          out.println(String.join("\t", n.getLemma(), n.getPOSTag(), "" + n.getHead().getID(), n.getLabel(), "" + n.getNamedEntityTag()));
        }
        out.println();
      }
    } catch (IOException e) {
      System.err.println(e);
    }
  }
}
